"""KSError: the largest gap between running sums of confidence and of correctness."""

from __future__ import annotations

import numpy as np

from confide.metrics.estimate import Span
from confide.metrics.intervals import Array, bars_span
from confide.metrics.items import Items
from confide.metrics.metric import Metric
from confide.metrics.ranked import top_ranks
from confide.metrics.ranks import Ranks

CELLS = 60  # of the interval


class KSError(Metric[Ranks]):
    """The largest |running sum of confidence - correctness| with rows sorted by confidence, over n. Needs no bins.

    Rows of equal confidence are added at once. Exact up to 65,536 rows; beyond, confidences within one of 7200 cells
    count as equal, which can hide no more than what one cell holds.
    """

    definition = (
        "Kolmogorov-Smirnov calibration error of the top label: "
        "max_t |1/n sum over items with confidence <= t of (confidence - correct)|."
    )

    def observe(self, items: Items) -> Ranks:
        return top_ranks(items)

    def brief(self, stats: Ranks) -> Ranks:
        return stats.brief(CELLS)

    def value(self, stats: Ranks) -> float:
        steps = stats.steps()
        if not steps.total:
            return float("nan")
        return float(np.abs(np.cumsum(steps.mass * steps.score - steps.hits)).max() / steps.total)

    def blank(self, classes: int) -> Ranks:
        return Ranks.blank()

    def span(self, stats: Ranks, clusters: list[Ranks]) -> Span:
        return bars_span(stats.grid.fold(CELLS), [part.grid for part in clusters], _largest_run)


def _largest_run(share: Array, gap: Array, count: Array) -> Array:
    return np.asarray(np.abs(np.cumsum(share * gap, -1)).max(-1))
