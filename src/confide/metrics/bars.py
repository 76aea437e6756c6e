"""Values and tables of binned sums: from integers to the end, so that the one rounding is that of the last division."""

from __future__ import annotations

import math

from confide.core.bins import Histogram, edges
from confide.core.stats import ONE
from confide.metrics.estimate import Bin


def weighted_gap(stats: Histogram) -> float:
    """The mean of |accuracy - confidence| over bins, weighted by what they hold."""
    rows = stats.rows()
    mass = sum(mass for _, mass, _, _ in rows)
    return sum(abs(hits - confidence) for _, _, hits, confidence in rows) / mass if mass else math.nan


def root_of_squares(stats: Histogram) -> float:
    """The root of the mean of (accuracy - confidence)**2 over bins, weighted by what they hold."""
    rows = [row[1:] for row in stats.rows() if row[1]]
    mass = sum(mass for mass, _, _ in rows)
    squares = math.fsum((hits - confidence) / mass * ((hits - confidence) / own) for own, hits, confidence in rows)
    return math.sqrt(squares) if mass else math.nan


def largest_gap(stats: Histogram) -> float:
    """The largest |accuracy - confidence| of any bin that holds something."""
    return max((abs(hits - confidence) / mass for _, mass, hits, confidence in stats.rows() if mass), default=math.nan)


def bars_of(stats: Histogram, limits: list[float] | None = None) -> list[Bin]:
    """One entry a bin; of equal width, unless their limits are given."""
    rows = stats.rows()
    limits = edges(len(rows)) if limits is None else limits
    return [_bar(lower, upper, *row) for lower, upper, row in zip(limits, limits[1:], rows, strict=False)]


def _bar(lower: float, upper: float, count: int, mass: int, hits: int, confidence: int) -> Bin:
    means = (confidence / mass, hits / mass) if mass else (None, None)
    return Bin(lower=lower, upper=upper, count=count, weight=mass / ONE, confidence=means[0], accuracy=means[1])
