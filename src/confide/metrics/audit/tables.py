"""The other tables of an audit: bins, classes, groups, units, and the risk-coverage curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from confide.core.sums import Mean
from confide.metrics.audit.sums import Part
from confide.metrics.bars import bars_of, weighted_gap
from confide.metrics.classwise_ece import class_errors
from confide.metrics.curves import risk_curve
from confide.metrics.ece import ECE
from confide.metrics.intervals import t_quantile, wilson
from confide.metrics.means import mean_of
from confide.metrics.overlap import dice, iou, masses, recall
from confide.metrics.signed_gap import SignedGap

if TYPE_CHECKING:
    from confide.metrics.audit.audit import Audit

FEW = 100  # groups of fewer rows are shown as too few
WORST = 20  # units listed
POINTS = 200  # of the risk-coverage curve
FINE = 60  # bins of the histogram


def reliability_rows(audit: Audit) -> list[dict[str, Any]]:
    """The bars of the diagram, with the interval of each accuracy."""
    rows: list[dict[str, Any]] = []
    for bar in bars_of(audit.sums.top.grid.fold(audit.bins)):
        low, high = wilson(bar["accuracy"], bar["count"]) if bar["accuracy"] is not None else (None, None)
        rows.append({**bar, "low": low, "high": high})
    return rows


def histogram_rows(audit: Audit) -> list[dict[str, Any]]:
    """How many rows have which confidence."""
    return [
        {k: bar[k] for k in ("lower", "upper", "count", "weight")} for bar in bars_of(audit.sums.top.grid.fold(FINE))
    ]


def class_rows(audit: Audit) -> list[dict[str, Any]]:
    """One line a class, in their order."""
    sums = audit.sums
    label, predicted, both = masses(sums.tally)
    total = max(label.sum(), 1e-300)
    probability = sums.classes.confidence.float().numpy().sum(-1) / total
    columns = {
        "count": label,
        "accuracy": recall(label, predicted, both),
        "predicted": predicted / total,
        "frequency": label / total,
        "probability": probability,
        "gap": probability - label / total,
        "ece": np.array(class_errors(sums.classes)),
        "iou": iou(label, predicted, both),
        "dice": dice(label, predicted, both),
    }
    return [{"class": k, **{name: float(x[k]) for name, x in columns.items()}} for k in range(audit.classes)]


def group_rows(audit: Audit) -> list[dict[str, Any]]:
    """One line for every value of every column; small groups are there, marked."""
    places = sorted(audit.groups, key=lambda place: (place[0], repr(place[1])))
    rows = []
    for place in places:
        part = audit.groups[place]
        clusters = [x for (where, _), x in sorted(audit.group_clusters.items(), key=repr) if where == place]
        line = {"column": place[0], "value": place[1], "n": part.n(), "too_few": part.n() < FEW}
        rows.append(line | _numbers(part, clusters, audit.bins))
    return rows


def _numbers(part: Part, clusters: Sequence[Part], bins: int) -> dict[str, Any]:
    ece = ECE(bins=bins).assess(part.top, [x.top for x in clusters])
    gap = SignedGap().assess(part.gap, [x.gap for x in clusters])
    return {
        "accuracy": mean_of(part.hit),
        "gap": gap.as_dict(),
        "ece": ece.as_dict(),
        "nll": mean_of(part.nll),
        "brier": mean_of(part.brier),
    }


def unit_table(audit: Audit) -> dict[str, Any] | None:
    """Means over units, which weigh the same however many rows they have, and the worst of them."""
    if not audit.units:
        return None
    rows = [{"unit": name, "n": part.n()} | _unit(part) for name, part in audit.units.items()]
    keys = ("accuracy", "gap", "ece", "nll", "brier")
    worst = sorted(rows, key=lambda row: (-row["ece"], repr(row["unit"])))[:WORST]
    return {"count": len(rows), "mean": {key: _mean([row[key] for row in rows]) for key in keys}, "worst": worst}


def _unit(part: Part) -> dict[str, Any]:
    def mean(stats: Mean) -> float:
        return mean_of(stats)

    accuracy, gap = mean(part.hit), mean(part.gap)
    numbers = {"accuracy": accuracy, "confidence": accuracy + gap, "gap": gap, "ece": weighted_gap(part.top)}
    return numbers | {"nll": mean(part.nll), "brier": mean(part.brier)}


def _mean(values: list[float]) -> dict[str, float]:
    n, mean = len(values), math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / max(n - 1, 1) / n)
    half = t_quantile(n - 1) * spread if n > 1 else math.nan
    return {"value": mean, "low": mean - half, "high": mean + half}


def risk_rows(audit: Audit) -> list[dict[str, Any]]:
    """The error rate among the surest rows, at evenly spread coverages."""
    steps = audit.sums.top.steps()
    coverage, risk = risk_curve(steps)
    if not len(coverage):
        return []
    places = np.unique(
        np.searchsorted(coverage, np.linspace(1 / POINTS, 1, POINTS) - 1e-12).clip(max=len(coverage) - 1)
    )
    confidence = steps.score[::-1]
    return [
        {"coverage": float(coverage[i]), "risk": float(risk[i]), "confidence": float(confidence[i])} for i in places
    ]
