"""Values and tables of binned sums: from integers to the end, so that the one rounding is that of the last division."""

from __future__ import annotations

from confide.core.bins import Histogram, edges
from confide.metrics.metric import Bin


def weighted_gap(stats: Histogram) -> float:
    """The mean of |accuracy - confidence| over bins, weighted by what they hold."""
    rows = stats.rows()
    mass = sum(mass for _, mass, _, _ in rows)
    return sum(abs(hits - confidence) for _, _, hits, confidence in rows) / mass if mass else float("nan")


def bars_of(stats: Histogram, limits: list[float] | None = None) -> list[Bin]:
    """One entry a bin; of equal width, unless their limits are given."""
    rows = stats.rows()
    limits = edges(len(rows)) if limits is None else limits
    return [_bar(lower, upper, *row) for lower, upper, row in zip(limits, limits[1:], rows, strict=False)]


def _bar(lower: float, upper: float, count: int, mass: int, hits: int, confidence: int) -> Bin:
    means = (confidence / mass, hits / mass) if mass else (None, None)
    return Bin(lower=lower, upper=upper, count=count, weight=mass / 2**32, confidence=means[0], accuracy=means[1])
