"""What to do, in a few sentences that follow from an audit's result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

NOTABLE = 0.02  # a class whose probability is off by so much is worth a sentence
FEW = 1000


def advice(result: dict[str, Any], class_names: Sequence[str]) -> list[str]:
    """At most one sentence a subject, the most useful first."""
    if not result["n"]:
        return ["No prediction was left to judge: see which labels are ignored."]
    return [*_direction(result), *_sample(result), *_classes(result, class_names), *_groups(result), *_units(result)]


def _direction(result: dict[str, Any]) -> Iterator[str]:
    direction = result["verdict"]["direction"]
    if direction == "over":
        yield (
            "Lower the confidence: divide the logits by a temperature above 1 that is fitted on other data (confide "
            "calibrate), or train with a margin (confide suggest proposes one for these logits)."
        )
    elif direction == "under":
        yield (
            "Raise the confidence: divide the logits by a temperature below 1 that is fitted on other data (confide "
            "calibrate), or train with less label smoothing or a larger margin."
        )
    elif direction == "mixed":
        yield (
            "Too sure at some confidences and not sure enough at others, so that one temperature cannot mend it: look "
            "at the reliability diagram, at classes and at groups."
        )
    elif result["verdict"]["calibrated"]:
        yield "Nothing needs mending that so many predictions could show."


def _sample(result: dict[str, Any]) -> Iterator[str]:
    if result["n"] < FEW:
        yield f"{result['n']:,} predictions tell little: read the interval, not the value, or use more data."


def _classes(result: dict[str, Any], class_names: Sequence[str]) -> Iterator[str]:
    worst = max(result["classes"], key=lambda row: abs(row["gap"] or 0.0))
    gap = worst["gap"] or 0.0
    if abs(gap) >= NOTABLE:
        more = "more" if gap > 0 else "less"
        yield (
            f"Class {class_title(worst['class'], class_names)} gets {100 * abs(gap):.1f} points {more} probability "
            f"than it occurs ({100 * worst['probability']:.1f} % for {100 * worst['frequency']:.1f} %): see what "
            "it is taken for, and whether training showed it as often."
        )


def _groups(result: dict[str, Any]) -> Iterator[str]:
    judged = [row for row in result["groups"] if not row["too_few"] and row["ece"]["value"] is not None]
    few = [row for row in result["groups"] if row["too_few"]]
    if len(judged) > 1:
        worst = max(judged, key=lambda row: row["ece"]["value"])
        yield f"The worst group is {worst['column']} = {worst['value']}, with an ECE of {_points(worst['ece'])}."
    if few:
        named = ", ".join(str(row["value"]) for row in few[:5]) + (", ..." if len(few) > 5 else "")
        yield f"Too few predictions to judge {named}: shown, not to be ranked."


def _units(result: dict[str, Any]) -> Iterator[str]:
    if result["units"] is None and result["dense"]:
        yield "Pixels of one image are alike, so that the intervals are too narrow: name the images with --unit."


def _points(ece: dict[str, Any]) -> str:
    span = "" if ece["low"] is None else f" (95 % interval {100 * ece['low']:.1f} to {100 * ece['high']:.1f})"
    return f"{100 * ece['value']:.1f} points{span}"


def class_title(number: int, names: Sequence[str]) -> str:
    """A class by its name, where there is one."""
    return f"{number} ({names[number]})" if number < len(names) else str(number)
