"""ECE: the expected calibration error of the top label, over bins of equal width."""

from __future__ import annotations

from typing import Any, TypedDict

from torch import Tensor

from confide.core.bins import Histogram, check_bins, edges
from confide.core.stats import ONE
from confide.metrics.metric import Metric
from confide.metrics.readings import top


class Bin(TypedDict):
    """One bar of a reliability diagram; the means of an empty bin are None."""

    lower: float
    upper: float
    count: int
    confidence: float | None
    accuracy: float | None


class ECE(Metric[Histogram]):
    """Mean gap between confidence and accuracy, bin by bin.

    The sums lie on a grid that every usual `bins` divides: `ECE(bins=10).value(other.stats)` needs no second pass.
    """

    definition = (
        "Top-label expected calibration error over B bins of equal width, (a, b], with 0 in the first and norm l1: "
        "sum_b n_b / n * |accuracy_b - confidence_b|, confidence = max_k softmax(z)_k."
    )

    def __init__(
        self, *, bins: int = 15, ignore_index: int | None = -100, dim: int = 1, from_probs: bool = False
    ) -> None:
        super().__init__(ignore_index=ignore_index, dim=dim, from_probs=from_probs)
        self.bins = check_bins(bins)

    def settings(self) -> dict[str, Any]:
        return {"bins": self.bins, **super().settings()}

    def observe(self, z: Tensor, y: Tensor) -> Histogram:
        guess, confidence = top(z)
        return Histogram.of(confidence, guess == y, keep=y >= 0)

    def value(self, stats: Histogram) -> float:
        """From integers to the end: the one rounding is that of the last division."""
        rows = stats.fold(self.bins).rows()
        count = sum(n for n, _, _ in rows)
        gap = sum(abs(correct * ONE - confidence) for _, correct, confidence in rows)
        return gap / (count * ONE) if count else float("nan")

    def bins_table(self, stats: Histogram | None = None) -> list[Bin]:
        """The numbers of the reliability diagram, of `stats` or of what was gathered. No rows before any data."""
        stats = self.stats if stats is None else stats
        rows = [] if stats is None else stats.fold(self.bins).rows()
        limits = edges(self.bins)
        return [_bin(lower, upper, *row) for lower, upper, row in zip(limits, limits[1:], rows, strict=False)]


def _bin(lower: float, upper: float, count: int, correct: int, confidence: int) -> Bin:
    mean = confidence / (count * ONE) if count else None
    return Bin(lower=lower, upper=upper, count=count, confidence=mean, accuracy=correct / count if count else None)
