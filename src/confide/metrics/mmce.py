"""MMCE: the maximum mean calibration error, with a Laplace kernel on the confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from confide.core.errors import KnobError
from confide.metrics.estimate import Span
from confide.metrics.intervals import Array, bars_span
from confide.metrics.items import Items
from confide.metrics.metric import Metric, Options
from confide.metrics.ranked import top_ranks
from confide.metrics.ranks import Ranks, Steps

if TYPE_CHECKING:
    from typing_extensions import Unpack

CELLS = 60  # of the interval


class MMCE(Metric[Ranks]):
    """Root of the mean, over all pairs of rows, of the product of their gaps times exp(-distance / width).

    In time linear in the rows, since the kernel factors along sorted confidences. Exact up to 65,536 rows; beyond, rows
    within one of 7200 cells count as equally confident, which changes a pair's kernel by 0.04 % at most.
    """

    definition = (
        "sqrt(1/n**2 sum_ij (confidence_i - correct_i)(confidence_j - correct_j) "
        "exp(-|confidence_i - confidence_j| / width)), all pairs, each row with itself included."
    )

    def __init__(self, *, width: float = 0.4, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        if not 0.01 <= width < float("inf"):
            raise KnobError(f"width must be at least 0.01, got {width}")
        self.width = width

    def settings(self) -> dict[str, Any]:
        return {"width": self.width, **super().settings()}

    def observe(self, items: Items) -> Ranks:
        return top_ranks(items)

    def brief(self, stats: Ranks) -> Ranks:
        return stats.brief(CELLS)

    def value(self, stats: Ranks) -> float:
        steps = stats.steps()
        return float(np.sqrt(max(_pairs(steps, self.width), 0.0)) / steps.total) if steps.total else float("nan")

    def blank(self, classes: int) -> Ranks:
        return Ranks.blank()

    def span(self, stats: Ranks, clusters: list[Ranks]) -> Span:
        place = (np.arange(CELLS) + 0.5) / CELLS
        kernel = np.exp(-np.abs(place[:, None] - place) / self.width)

        def number(share: Array, gap: Array, count: Array) -> Array:
            g = share * gap
            return np.asarray(np.sqrt(np.maximum((g @ kernel * g).sum(-1), 0.0)))

        return bars_span(stats.grid.fold(CELLS), [part.grid for part in clusters], number)


def _pairs(steps: Steps, width: float) -> float:
    """The sum over all pairs; in float64, 1 / width <= 100 keeps the factors finite."""
    gap = steps.mass * steps.score - steps.hits
    up = np.cumsum(gap * np.exp((steps.score - 1) / width)) * np.exp((1 - steps.score) / width)
    return float(2 * (gap * up).sum() - (gap * gap).sum())
