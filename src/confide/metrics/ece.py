"""ECE: the expected calibration error of the top label, over bins of equal width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confide.core.bins import CELLS, Histogram, check_bins
from confide.metrics.bars import bars_of, weighted_gap
from confide.metrics.estimate import Bin, Span
from confide.metrics.intervals import bars_span
from confide.metrics.items import Items
from confide.metrics.metric import Metric, Options
from confide.metrics.norms import mean_absolute

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ECE(Metric[Histogram]):
    """Mean gap between confidence and accuracy, bin by bin.

    The sums lie on a grid that every usual `bins` divides: `ECE(bins=10).value(other.stats)` needs no second pass.
    The interval is for the same sum on infinitely many rows; at small n the value itself lies above it.
    """

    definition = (
        "Top-label expected calibration error over B bins of equal width, (a, b], with 0 in the first and norm l1: "
        "sum_b n_b / n * |accuracy_b - confidence_b|, confidence = max_k softmax(z)_k."
    )

    def __init__(self, *, bins: int = 15, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.bin_count = check_bins(bins)

    def settings(self) -> dict[str, Any]:
        return {"bins": self.bin_count, **super().settings()}

    def observe(self, items: Items) -> Histogram:
        return Histogram.of(items.confidence, items.hit, items.keep, items.weight)

    def brief(self, stats: Histogram) -> Histogram:
        return stats.fold(self.bin_count)

    def value(self, stats: Histogram) -> float:
        return weighted_gap(stats.fold(self.bin_count))

    def blank(self, classes: int) -> Histogram:
        return Histogram.blank(CELLS)

    def span(self, stats: Histogram, clusters: list[Histogram]) -> Span:
        return bars_span(stats.fold(self.bin_count), clusters, mean_absolute)

    def bins(self, stats: Histogram | None = None) -> list[Bin]:
        """The bars of the reliability diagram, of `stats` or of what was gathered. No rows before any data."""
        stats = self.stats if stats is None else stats
        return [] if stats is None else bars_of(stats.fold(self.bin_count))
