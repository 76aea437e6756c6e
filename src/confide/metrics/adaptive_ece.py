"""AdaptiveECE: the calibration error over bins that hold equally many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from confide.core.bins import check_bins
from confide.core.errors import KnobError
from confide.metrics.equal_mass import Index, bars, limits, released, together
from confide.metrics.estimate import Bin, Span
from confide.metrics.intervals import Bars, gaps_span
from confide.metrics.items import Items
from confide.metrics.metric import Metric, Options
from confide.metrics.norms import mean_absolute
from confide.metrics.ranked import BRIEF, cluster_gaps, top_ranks
from confide.metrics.ranks import Ranks

if TYPE_CHECKING:
    from typing_extensions import Unpack

TIES = {"together": together, "released": released}


class AdaptiveECE(Metric[Ranks]):
    """Mean gap between confidence and accuracy over bins of equally many rows.

    Nobody is dropped, and rows of equal confidence stay together. `ties="released"` is what the code released with the
    papers computes: it drops the smallest confidence and all that equal it, and is 0 for a constant one.
    Exact up to 65,536 rows; beyond, confidences within one of 7200 cells count as equal, which moves the edge of a bin
    by one cell at most.
    """

    definition = (
        "Top-label calibration error, norm l1, over B bins of equally many rows, rows of equal confidence together: "
        "sum_b n_b / n * |accuracy_b - confidence_b|."
    )

    def __init__(
        self, *, bins: int = 15, ties: Literal["together", "released"] = "together", **options: Unpack[Options]
    ) -> None:
        super().__init__(**options)
        if ties not in TIES:
            raise KnobError(f"ties={ties!r} is unknown; pass 'together' or 'released'")
        self.bin_count, self.ties = check_bins(bins), ties

    def settings(self) -> dict[str, Any]:
        return {"bins": self.bin_count, "ties": self.ties, **super().settings()}

    def observe(self, items: Items) -> Ranks:
        return top_ranks(items)

    def brief(self, stats: Ranks) -> Ranks:
        return stats.brief(BRIEF)

    def value(self, stats: Ranks) -> float:
        if not stats.n():
            return float("nan")
        found = self._bars(stats)
        return float((found.share * np.abs(found.gap)).sum())

    def blank(self, classes: int) -> Ranks:
        return Ranks.blank()

    def span(self, stats: Ranks, clusters: list[Ranks]) -> Span:
        if not stats.n():
            return Span()
        stats = stats.brief(BRIEF) if clusters else stats  # bins whose edges the sums of clusters know
        found = self._bars(stats)
        return gaps_span(found, cluster_gaps(clusters, stats, self._place(stats), self.bin_count), mean_absolute)

    def bins(self) -> list[Bin]:
        """The bars of the reliability diagram. No rows before any data."""
        if self.stats is None or not self.stats.n():
            return []
        steps = self.stats.steps()
        place = TIES[self.ties](steps, self.bin_count)
        edges, found = limits(steps, place, self.bin_count), bars(steps, place, self.bin_count, 0.0)
        return [
            Bin(lower=low, upper=high, count=round(m), weight=m, confidence=c if m else None, accuracy=a if m else None)
            for low, high, m, c, a in zip(
                edges, edges[1:], *(x.tolist() for x in (found.mass, found.confidence, found.accuracy)), strict=False
            )
        ]

    def _bars(self, stats: Ranks) -> Bars:
        return bars(stats.steps(), self._place(stats), self.bin_count, stats.effective())

    def _place(self, stats: Ranks) -> Index:
        return TIES[self.ties](stats.steps(), self.bin_count)
