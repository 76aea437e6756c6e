"""The value of a mean: from integers to the end, so that the one rounding is that of the last division."""

from __future__ import annotations

from confide.core.sums import Mean


def mean_of(stats: Mean) -> float:
    """NaN of nothing, infinite where a row's number was."""
    weight, total = stats.sums.units()[:2]
    if not weight:
        return float("nan")
    return float("inf") if int(stats.wild[0]) else total / weight
