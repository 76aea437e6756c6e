"""LogitStats: how far logits lie below the largest, against a margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from confide.core.errors import KnobError
from confide.core.stats import Bag, exactly
from confide.core.sums import Mean
from confide.metrics.estimate import Span
from confide.metrics.intervals import share_span
from confide.metrics.items import Items
from confide.metrics.means import mean_of
from confide.metrics.metric import Metric, Options

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, eq=False, repr=False)
class DistanceSums(Bag):
    """Of every row the share of distances beyond the margin, their mean, the largest, and the smallest."""

    beyond: Mean
    mean: Mean
    largest: Mean
    gap: Mean


class LogitStats(Metric[DistanceSums]):
    """The share of logit distances beyond a margin: what a margin-based loss would pull on.

    Distances are those of the other classes' logits below the largest. `parts()` has their mean, the mean of each row's
    largest, and of its smallest: the lead of the predicted class.
    """

    definition = (
        "Share of the distances max_j z_j - z_k, k not the predicted class, that exceed the margin; parts: mean "
        "distance 1/(C-1) sum_k (max_j z_j - z_k), largest max_j z_j - min_k z_k, and lead over the second class."
    )
    goal = "none"

    def __init__(self, *, margin: float = 10.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        if not margin >= 0:
            raise KnobError(f"margin must be at least 0, got {margin}")
        self.margin = margin

    def settings(self) -> dict[str, Any]:
        return {"margin": self.margin, **super().settings()}

    def observe(self, items: Items) -> DistanceSums:
        distance = items.z.amax(items.axis, keepdim=True) - items.z
        others = items.classes - 1
        beyond = exactly((distance > self.margin).sum(items.axis)) / others
        mean = exactly(items.over_classes(exactly(distance))) / others
        two = distance.topk(2, dim=items.axis, largest=False).values.select(items.axis, 1)

        def summed(x: Tensor) -> Mean:
            return Mean.of(x, items.keep, items.weight)

        return DistanceSums(summed(beyond), summed(mean), summed(distance.amax(items.axis)), summed(two))

    def value(self, stats: DistanceSums) -> float:
        return mean_of(stats.beyond)

    def parts(self) -> dict[str, float]:
        """Mean, largest and smallest distance, each the mean over rows."""
        if self.stats is None:
            return {}
        return {name: mean_of(getattr(self.stats, name)) for name in ("mean", "largest", "gap")}

    def blank(self, classes: int) -> DistanceSums:
        return DistanceSums(*(Mean.blank() for _ in range(4)))

    def span(self, stats: DistanceSums, clusters: list[DistanceSums]) -> Span:
        return share_span(stats.beyond, [part.beyond for part in clusters])
