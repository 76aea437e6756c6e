"""RMSCE: the root mean square calibration error of the top label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confide.core.bins import CELLS, Histogram, check_bins
from confide.metrics.bars import bars_of, root_of_squares
from confide.metrics.estimate import Bin, Span
from confide.metrics.intervals import bars_span
from confide.metrics.items import Items
from confide.metrics.metric import Metric, Options
from confide.metrics.norms import root_mean_square

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RMSCE(Metric[Histogram]):
    """Root of the mean squared gap between confidence and accuracy, bin by bin. Large gaps weigh more than in ECE."""

    definition = (
        "Top-label calibration error over B bins of equal width, (a, b], with norm l2: "
        "sqrt(sum_b n_b / n * (accuracy_b - confidence_b)**2)."
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
        return root_of_squares(stats.fold(self.bin_count))

    def blank(self, classes: int) -> Histogram:
        return Histogram.blank(CELLS)

    def span(self, stats: Histogram, clusters: list[Histogram]) -> Span:
        return bars_span(stats.fold(self.bin_count), clusters, root_mean_square)

    def bins(self, stats: Histogram | None = None) -> list[Bin]:
        """The bars of the reliability diagram, of `stats` or of what was gathered. No rows before any data."""
        stats = self.stats if stats is None else stats
        return [] if stats is None else bars_of(stats.fold(self.bin_count))
