"""SignedGap: whether a model is overconfident or underconfident, and by how much."""

from __future__ import annotations

import math

from torch import Tensor

from confide.core.stats import exactly
from confide.core.sums import Mean
from confide.metrics.estimate import Span
from confide.metrics.intervals import mean_span
from confide.metrics.items import Items
from confide.metrics.means import mean_of
from confide.metrics.metric import Metric


class SignedGap(Metric[Mean]):
    """Mean confidence minus accuracy: above 0 the model is overconfident, below 0 underconfident.

    At 0 a model may still be wrong in both directions: ECE is at least the size of this.
    """

    definition = (
        "Mean confidence minus accuracy: mean of max_k softmax(z)_k - [argmax_k z_k = y]; above 0 is overconfident."
    )
    goal = "none"

    def observe(self, items: Items) -> Mean:
        return Mean.of(_gap(items), items.keep, items.weight)

    def value(self, stats: Mean) -> float:
        return mean_of(stats)

    def blank(self, classes: int) -> Mean:
        return Mean.blank()

    def span(self, stats: Mean, clusters: list[Mean]) -> Span:
        span = mean_span(stats, clusters)
        return Span(span.low, span.high, 0.0, gap_verdict(self.value(stats), span.low, span.high))


def gap_verdict(gap: float, low: float, high: float) -> str:
    """In points of a percent, as people speak of it."""
    if math.isnan(gap):
        return "No data."
    points, interval = f"{abs(gap) * 100:.1f} points", _interval(gap, low, high)
    if low <= 0 <= high or math.isnan(low):
        return f"Neither over- nor underconfident on average: {gap * 100:+.1f} points {interval}."
    return f"{'Overconfident' if gap > 0 else 'Underconfident'} by {points} {interval}."


def _interval(gap: float, low: float, high: float) -> str:
    if math.isnan(low):
        return "(no interval)"
    ends = (low, high) if low <= 0 <= high else sorted((abs(low), abs(high)))
    return f"(95 % interval {ends[0] * 100:.1f} to {ends[1] * 100:.1f})"


def _gap(items: Items) -> Tensor:
    return exactly(items.confidence) - exactly(items.hit)
