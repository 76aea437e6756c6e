"""DebiasedECE: the l2 calibration error without what chance adds to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from confide.core.bins import check_bins
from confide.metrics.equal_mass import Index, bars, together
from confide.metrics.estimate import Span
from confide.metrics.intervals import Array, Bars, gaps_span
from confide.metrics.items import Items
from confide.metrics.metric import Metric, Options
from confide.metrics.ranked import BRIEF, cluster_gaps, top_ranks
from confide.metrics.ranks import Ranks

if TYPE_CHECKING:
    from typing_extensions import Unpack


class DebiasedECE(Metric[Ranks]):
    """The root of the mean squared gap over bins of equally many rows, less what chance adds to the squares.

    Near 0 for a calibrated model at any n, where RMSCE and ECE are not; cut off at 0 where chance explains it all.
    Exact up to 65,536 rows; beyond, confidences within one of 7200 cells count as equal.
    """

    definition = (
        "Debiased l2 calibration error of the top label (Kumar et al. 2019) over B bins of equally many rows: "
        "sqrt(max(0, sum_b n_b / n * ((accuracy_b - confidence_b)**2 - accuracy_b (1 - accuracy_b) / (n_b - 1))))."
    )

    def __init__(self, *, bins: int = 15, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.bin_count = check_bins(bins)

    def settings(self) -> dict[str, Any]:
        return {"bins": self.bin_count, **super().settings()}

    def observe(self, items: Items) -> Ranks:
        return top_ranks(items)

    def brief(self, stats: Ranks) -> Ranks:
        return stats.brief(BRIEF)

    def value(self, stats: Ranks) -> float:
        if not stats.n():
            return float("nan")
        found = self._bars(stats, stats.steps().total)  # a row of weight 2 counts as two
        noise = found.accuracy * (1 - found.accuracy)
        return float(_root(found.share, found.gap, noise, found.count))

    def blank(self, classes: int) -> Ranks:
        return Ranks.blank()

    def span(self, stats: Ranks, clusters: list[Ranks]) -> Span:
        if not stats.n():
            return Span()
        stats = stats.brief(BRIEF) if clusters else stats  # bins whose edges the sums of clusters know
        found = self._bars(stats, stats.effective())

        def debiased(share: Array, gap: Array, count: Array) -> Array:
            accuracy = np.clip(found.confidence - gap, 0, 1)
            return _root(share, gap, accuracy * (1 - accuracy), count)

        return gaps_span(found, cluster_gaps(clusters, stats, self._place(stats), self.bin_count), debiased)

    def _bars(self, stats: Ranks, rows: float) -> Bars:
        return bars(stats.steps(), self._place(stats), self.bin_count, rows)

    def _place(self, stats: Ranks) -> Index:
        return together(stats.steps(), self.bin_count)


def _root(share: Array, gap: Array, noise: Array, count: Array) -> Array:
    """Bins of one row say nothing about their own noise and are left out."""
    enough = count > 1
    squares = np.where(enough, gap**2 - noise / np.where(enough, count - 1, 1.0), 0.0)
    return np.asarray(np.sqrt(np.maximum((share * squares).sum(-1), 0.0)))
