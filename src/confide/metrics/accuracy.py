"""Accuracy: how often the label is among the top classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from confide.core.errors import KnobError
from confide.core.sums import Mean
from confide.metrics.estimate import Span
from confide.metrics.intervals import share_span
from confide.metrics.items import Items
from confide.metrics.means import mean_of
from confide.metrics.metric import Metric, Options

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Accuracy(Metric[Mean]):
    """Share of rows whose label is among the `top` classes; of tied logits the lower index comes first."""

    definition = (
        "Share of items whose label is among the `top` largest logits (1: the predicted class), ties to the lower "
        "class; under a soft target the probability that it gives to those classes."
    )
    goal = "high"

    def __init__(self, *, top: int = 1, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        if top < 1:
            raise KnobError(f"top must be at least 1, got {top}")
        self.top = top

    def settings(self) -> dict[str, Any]:
        return {"top": self.top, **super().settings()}

    def observe(self, items: Items) -> Mean:
        hit = items.hit if self.top == 1 else _among(items, self.top)
        return Mean.of(hit, items.keep, items.weight)

    def value(self, stats: Mean) -> float:
        return mean_of(stats)

    def blank(self, classes: int) -> Mean:
        return Mean.blank()

    def span(self, stats: Mean, clusters: list[Mean]) -> Span:
        return share_span(stats, clusters)


def _among(items: Items, top: int) -> Tensor:
    """Whether the label is among the top classes, or the share of a soft target that is."""
    if items.soft is not None:
        order = torch.sort(items.x, dim=items.axis, descending=True, stable=True).indices
        best = order.narrow(items.axis, 0, min(top, items.classes))
        return items.soft.gather(items.axis, best).sum(items.axis)
    label = items.y.clamp(min=0)
    own = items.at(items.x, label).unsqueeze(items.axis)
    before = torch.arange(items.classes, device=items.x.device).unsqueeze(1 - items.axis) < label.unsqueeze(items.axis)
    return ((items.x > own) | ((items.x == own) & before)).sum(items.axis) < top
