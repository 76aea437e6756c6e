"""MCE: the largest calibration error of any bin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confide.core.bins import CELLS, Histogram, check_bins
from confide.metrics.bars import bars_of, largest_gap
from confide.metrics.estimate import Bin, Span
from confide.metrics.intervals import bars_span
from confide.metrics.items import Items
from confide.metrics.metric import Metric, Options
from confide.metrics.norms import largest

if TYPE_CHECKING:
    from typing_extensions import Unpack


class MCE(Metric[Histogram]):
    """Largest gap between confidence and accuracy of any bin that holds something.

    A bin with a handful of rows decides it: look at the interval, and at `bins()`.
    """

    definition = (
        "Top-label calibration error over B bins of equal width, (a, b], with norm l-infinity: "
        "max_b |accuracy_b - confidence_b| over bins that hold something."
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
        return largest_gap(stats.fold(self.bin_count))

    def blank(self, classes: int) -> Histogram:
        return Histogram.blank(CELLS)

    def span(self, stats: Histogram, clusters: list[Histogram]) -> Span:
        return bars_span(stats.fold(self.bin_count), clusters, largest)

    def bins(self, stats: Histogram | None = None) -> list[Bin]:
        """The bars of the reliability diagram, of `stats` or of what was gathered. No rows before any data."""
        stats = self.stats if stats is None else stats
        return [] if stats is None else bars_of(stats.fold(self.bin_count))
