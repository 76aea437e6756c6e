"""Sentences that follow from a method's card and its curve, for the terminal and for the documentation."""

from __future__ import annotations

from collections.abc import Iterator

from confide.losses.card import Card
from confide.report.curves import CLASSES, Curve


def behaviour(card: Card) -> list[str]:
    """What may be done with a method, and what it does beside fitting labels."""
    return [_constant(card), _sum(card), _soft(card), _masks(card), *_batch(card)]


def scene(lines: Curve) -> str:
    """Which prediction the curve is about."""
    return (
        f"A right prediction among {CLASSES} classes: its logit is d, the others are 0. f > 0 softens: it lowers the "
        f"target of the predicted class and raises those of the others. {lines.scene.words}"
    ).rstrip()


def softening(lines: Curve) -> Iterator[str]:
    """What the curve comes to."""
    if not any(lines.predicted.acts + lines.other.acts):
        yield "f = 0 and C = 0 everywhere: nothing is softened."
    if lines.first != lines.other:
        apart, others = (max(side.f, key=abs) + 0.0 for side in (lines.first, lines.other))
        yield (
            f"{lines.scene.first} is treated apart: there f reaches {apart:.2g} where the other classes have "
            f"{others:.2g}."
        )
    if lines.rest is None:
        yield (
            f"The true logit is still pulled up at d = {lines.distance[-1]:g}, where the confidence is "
            f"{near_one(lines.confidence)}."
        )
    else:
        yield (
            f"The true logit is pulled up until d = {lines.rest:.2f}, where the confidence is "
            f"{near_one(lines.confidence)}, and no further."
        )


def near_one(p: float) -> str:
    """A probability that may be next to 1."""
    return f"{p:.4f}" if p < 0.99995 else f"within {1 - p:.1g} of 1"


def _constant(card: Card) -> str:
    if card.invariant:
        return "Adding a constant to all logits of a row changes nothing."
    return "Adding a constant to all logits of a row changes the loss: it looks at their absolute size."


def _sum(card: Card) -> str:
    if card.balanced:
        return "The gradient of a row sums to zero: nothing pushes all logits together."
    if card.invariant:
        return (
            "The gradient of a row does not sum to zero, and nothing brings all logits back: they may drift together."
        )
    return "The gradient of a row does not sum to zero: it also moves all logits together."


def _soft(card: Card) -> str:
    if why := card.exempt.get("soft_is_expectation"):
        return f"A soft target is taken as it is, not as copies of the row with hard labels in its proportions: {why}."
    return "A soft target counts like copies of the row with hard labels in its proportions."


def _masks(card: Card) -> str:
    if card.masked:
        return "Classes may be masked with logits of -inf."
    return "Logits of -inf are refused, so classes cannot be masked with them."


def _batch(card: Card) -> Iterator[str]:
    if card.coupled:
        yield "It measures the batch as a whole: rows have no losses of their own, and reduction='none' is refused."
    if card.spatial:
        yield "It looks at neighbouring pixels: the logits are (N, C, d1, ..., dk), with at least one axis of pixels."
