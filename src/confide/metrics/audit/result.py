"""What an audit says, as plain data: dicts, lists, strings and numbers; None where there is no number. JSON takes it.

schema            1
n                 rows that counted
classes_count, bins_count, dense, settings       how they were read; dense: whether rows are pixels
verdict           {headline, direction: "over" | "under" | "none" | "mixed", calibrated: bool or None, gap, ece, low,
                  high, chance, sentences}: fractions; low, high and chance are of the ECE. Print `headline` first
metrics           [{key, metric, value, low, high, chance, n, verdict, note, definition, goal: "low" | "high" | "none",
                  kind: "calibration" | "score" | "ranking" | "overlap"}]: low and high are the 95 % interval, chance
                  what a perfectly calibrated model would show at this n, or None; value may lie above high, see `note`
bins              [{lower, upper, count, weight, confidence, accuracy, low, high}]: the bars of the reliability diagram;
                  low and high are the 95 % interval of the accuracy; means of an empty bin are None
histogram         [{lower, upper, count, weight}]: of the confidence, 60 bins
classes           [{class, count, accuracy, predicted, frequency, probability, gap, ece, iou, dice}]: weight of the rows
                  with the label, recall, share predicted as it, share with the label, mean probability, probability -
                  frequency
groups            [{column, value, n, too_few, accuracy, gap, ece, nll, brier}]: every value of every column, those of
                  fewer than 100 rows marked; `ece` and `gap` are {value, low, high, chance, n, verdict, ...}
units             None, or {count, mean: {accuracy, gap, ece, nll, brier: {value, low, high}}, worst: [{unit, n,
                  accuracy, confidence, gap, ece, nll, brier}]}: means over units, each weighing the same, not over
                  pooled rows; and the 20 units of largest ECE
risk_coverage     [{coverage, risk, confidence}]: the error rate among the surest share of the rows, and the least
                  confidence among them
temperature       None; a place for advice
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from confide.metrics.audit.rows import metric_rows
from confide.metrics.audit.tables import class_rows, group_rows, histogram_rows, reliability_rows, risk_rows, unit_table
from confide.metrics.signed_gap import gap_verdict

if TYPE_CHECKING:
    from confide.metrics.audit.audit import Audit

SCHEMA = 1


def result_of(audit: Audit) -> dict[str, Any]:
    """Compute everything from the sums."""
    rows = metric_rows(audit)
    found = {row["key"]: row for row in rows}
    data: dict[str, Any] = plain(
        {
            "schema": SCHEMA,
            "n": audit.sums.n(),
            "classes_count": audit.classes,
            "bins_count": audit.bins,
            "dense": audit.dense,
            "settings": audit.settings(),
            "verdict": verdict_of(found),
            "metrics": rows,
            "bins": reliability_rows(audit),
            "histogram": histogram_rows(audit),
            "classes": class_rows(audit),
            "groups": group_rows(audit),
            "units": unit_table(audit),
            "risk_coverage": risk_rows(audit),
            "temperature": None,
        }
    )
    return data


def verdict_of(found: dict[str, Any]) -> dict[str, Any]:
    """In words: over- or underconfident, by how much, against what chance would show."""
    gap, ece = found["signed_gap"], found["ece"]
    if not gap["n"]:
        return {"headline": "No data.", "direction": "none", "calibrated": None, "sentences": []}
    calibrated = None if math.isnan(ece["low"]) else not ece["low"] > 0
    sure = gap["low"] > 0 or gap["high"] < 0
    direction = ("over" if gap["value"] > 0 else "under") if sure else ("mixed" if calibrated is False else "none")
    return {
        "headline": _headline(direction if calibrated is not None else "unknown", gap, ece),
        "direction": direction,
        "calibrated": calibrated,
        "gap": gap["value"],
        "ece": ece["value"],
        **{key: ece[key] for key in ("low", "high", "chance")},
        "sentences": [f"Accuracy {_percent(found['accuracy'])}.", f"ECE: {_interval(ece)}."],
    }


def _headline(direction: str, gap: dict[str, Any], ece: dict[str, Any]) -> str:
    chance = "" if ece["chance"] is None else f", where chance alone would show {100 * ece['chance']:.1f} at this n"
    size = f"ECE {100 * ece['value']:.1f} points{chance}"
    if direction in ("over", "under"):
        return f"{gap_verdict(gap['value'], gap['low'], gap['high']).rstrip('.')}; {size}."
    words = {
        "unknown": "Too few rows or units to judge",
        "none": "Consistent with perfect calibration",
        "mixed": "Over- and underconfident at different confidences",
    }
    return f"{words[direction]}: {size}."


def _interval(ece: dict[str, Any]) -> str:
    if math.isnan(ece["low"]):
        return "no interval at this n"
    ends = f"{100 * ece['low']:.1f} to {100 * ece['high']:.1f} points"
    return f"on infinitely many rows it would lie within {ends} (95 % interval)"


def _percent(row: dict[str, Any]) -> str:
    return f"{100 * row['value']:.1f} % (95 % interval {100 * row['low']:.1f} to {100 * row['high']:.1f})"


def plain(x: Any) -> Any:
    """Without numbers that JSON lacks."""
    if isinstance(x, dict):
        return {str(key): plain(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x
