"""Dice: how well predicted and true regions overlap, over all pixels of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confide.core.sums import Tally
from confide.metrics.classes import tally
from confide.metrics.estimate import Span
from confide.metrics.items import Items
from confide.metrics.metric import Metric, Options
from confide.metrics.overlap import Array, dice, masses, mean_of_classes, overlap_span

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Dice(Metric[Tally]):
    """Mean over classes of the Dice coefficient, from counts over all pixels.

    A class that neither occurs nor is predicted has no value and is left out. `background=False` leaves class 0 out.
    """

    definition = (
        "Mean over classes of 2 |A and B| / (|A| + |B|), from counts over all kept pixels of the data set (not a mean "
        "over images: that is MeanOver(Dice())); classes that neither occur nor are predicted are left out."
    )
    goal = "high"
    classwise = True

    def __init__(self, *, background: bool = True, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.background = background

    def settings(self) -> dict[str, Any]:
        return {"background": self.background, **super().settings()}

    def observe(self, items: Items) -> Tally:
        return tally(items)

    def value(self, stats: Tally) -> float:
        return float(self._mean(*masses(stats)))

    def per_class(self, stats: Tally | None = None) -> list[float]:
        """Of each class; NaN where it neither occurs nor is predicted."""
        stats = self.stats if stats is None else stats
        return [] if stats is None else dice(*masses(stats)).tolist()

    def blank(self, classes: int) -> Tally:
        return Tally.blank(classes)

    def span(self, stats: Tally, clusters: list[Tally]) -> Span:
        return overlap_span(stats, clusters, self._mean)

    def _mean(self, label: Array, predicted: Array, both: Array) -> Array:
        return mean_of_classes(dice(label, predicted, both), not self.background)
