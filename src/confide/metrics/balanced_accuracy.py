"""BalancedAccuracy: the mean over classes of how often a class is recognised."""

from __future__ import annotations

from confide.core.sums import Tally
from confide.metrics.classes import tally
from confide.metrics.estimate import Span
from confide.metrics.items import Items
from confide.metrics.metric import Metric
from confide.metrics.overlap import Array, masses, mean_of_classes, overlap_span, recall


class BalancedAccuracy(Metric[Tally]):
    """Mean over the classes that occur of the share of their rows that are predicted right."""

    definition = (
        "Mean over the classes that occur as a label of the share of their items that are predicted as that class "
        "(macro recall)."
    )
    goal = "high"
    classwise = True

    def observe(self, items: Items) -> Tally:
        return tally(items)

    def value(self, stats: Tally) -> float:
        return float(self._mean(*masses(stats)))

    def per_class(self, stats: Tally | None = None) -> list[float]:
        """The recall of each class; NaN where it does not occur."""
        stats = self.stats if stats is None else stats
        return [] if stats is None else recall(*masses(stats)).tolist()

    def blank(self, classes: int) -> Tally:
        return Tally.blank(classes)

    def span(self, stats: Tally, clusters: list[Tally]) -> Span:
        return overlap_span(stats, clusters, self._mean)

    def _mean(self, label: Array, predicted: Array, both: Array) -> Array:
        return mean_of_classes(recall(label, predicted, both))
