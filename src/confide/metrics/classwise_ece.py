"""ClasswiseECE: the calibration error of every class's probability, averaged over classes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from confide.core.bins import Histogram, check_bins
from confide.metrics.classes import by_class
from confide.metrics.estimate import Span
from confide.metrics.intervals import bars_span
from confide.metrics.items import Items
from confide.metrics.metric import Metric, Options
from confide.metrics.norms import class_mean

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ClasswiseECE(Metric[Histogram]):
    """The ECE of each class's probability against "the label is this class", averaged over all classes.

    All C classes count, also those that never occur as a label. Its state is `classes` times `bins` entries.
    """

    definition = (
        "Mean over all C classes of the expected calibration error of softmax(z)_k against [y = k], over B bins of "
        "equal width, (a, b], with 0 in the first and norm l1: "
        "1/C sum_k sum_b n_kb / n * |frequency_kb - probability_kb|."
    )
    classwise = True

    def __init__(self, *, bins: int = 15, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.bin_count = check_bins(bins)

    def settings(self) -> dict[str, Any]:
        return {"bins": self.bin_count, **super().settings()}

    def observe(self, items: Items) -> Histogram:
        return by_class(items, self.bin_count)

    def value(self, stats: Histogram) -> float:
        errors = self.per_class(stats)
        return sum(errors) / len(errors) if errors else math.nan

    def per_class(self, stats: Histogram | None = None) -> list[float]:
        """The error of each class, of `stats` or of what was gathered."""
        stats = self.stats if stats is None else stats
        return [] if stats is None else class_errors(stats)

    def blank(self, classes: int) -> Histogram:
        return Histogram.blank(classes, self.bin_count)

    def span(self, stats: Histogram, clusters: list[Histogram]) -> Span:
        return bars_span(stats, clusters, class_mean)


def class_errors(stats: Histogram) -> list[float]:
    """The error of each class: from integers to the end."""
    classes, bins = stats.count.shape
    rows = stats.rows()
    return [_error(rows[k * bins : (k + 1) * bins]) for k in range(classes)]


def _error(rows: list[tuple[int, int, int, int]]) -> float:
    mass = sum(row[1] for row in rows)
    return sum(abs(hits - confidence) for _, _, hits, confidence in rows) / mass if mass else math.nan
