"""MeanOver: a metric of each image (or each batch), averaged; not the metric of all pixels pooled."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.core.sums import Mean
from confide.metrics.detection import one_of
from confide.metrics.estimate import Span
from confide.metrics.intervals import mean_span
from confide.metrics.items import Items
from confide.metrics.layout import Side
from confide.metrics.means import mean_of
from confide.metrics.metric import Metric

UNIT = 1 << 12  # rows a weight of 1 stands for: large images do not overflow, small ones keep their digits


class MeanOver(Metric[Mean]):
    """The mean over images of a metric of one image, each weighing the same; or over batches, as some papers do.

    metric: any metric; its options (region, ignore_index, ...) hold.
    over: "image", one entry of the first axis, which must come whole in one update; "update", what comes in one update,
        a volume, say; or "batch", the same, warning that the value depends on the batch size.
    weighted: each image weighs what its kept rows are.

    Images without a value, such as those without foreground, are left out. The state has a constant size.
    """

    whole = True
    definition = "Mean over images (or batches) of the metric of each: not the metric of all pixels pooled."

    def __init__(
        self, metric: Metric[Any], *, over: Literal["image", "update", "batch"] = "image", weighted: bool = False
    ) -> None:
        names = ("inputs", "ignore_index", "dim", "region", "classes")
        super().__init__(**{name: getattr(metric, name) for name in names})
        self.metric, self.weighted = metric.copy(empty=True), weighted
        self.over = one_of("over", over, ("image", "update", "batch"))
        self.goal = metric.goal
        self.definition = f"Mean over {over}s{', weighted by their rows,' if weighted else ''} of: {metric.definition}"
        if over == "batch":
            warnings.warn(
                f"MeanOver({type(metric).__name__}, over='batch') depends on the batch size; it is here to "
                "compare with papers that report it",
                stacklevel=2,
            )

    def settings(self) -> dict[str, Any]:
        own = {"metric": type(self.metric).__name__, "over": self.over, "weighted": self.weighted}
        return own | {f"metric.{name}": value for name, value in self.metric.settings().items()}

    def observe(self, items: Items) -> Mean:
        raise NotImplementedError("MeanOver measures whole images, not pieces")

    def value(self, stats: Mean) -> float:
        return mean_of(stats)

    def blank(self, classes: int) -> Mean:
        return Mean.blank()

    def span(self, stats: Mean, clusters: list[Mean]) -> Span:
        return mean_span(stats, clusters)

    def _measure(self, input: Tensor, target: Tensor, side: Side) -> tuple[Mean, dict[int, Mean]]:
        """One number an image; of several images of one unit the interval resamples the unit."""
        total = Mean.blank()
        clusters: dict[int, Mean] = {}
        slots = None if side.unit is None else side.unit.slots()
        for number, image, part in self._parts(input, target, side):
            try:
                stats = self._one(*image, part)
            except InputError:
                self.metric._measure(input, target, side)  # says the same with the place in the whole batch
                raise
            total = total + stats
            if slots is not None and side.unit is not None:
                slot = int(slots[int(side.unit.codes.reshape(len(target), -1)[number, 0])])
                clusters[slot] = clusters[slot] + stats if slot in clusters else stats
        return total, clusters

    def _parts(self, input: Tensor, target: Tensor, side: Side) -> Iterator[tuple[int, tuple[Tensor, Tensor], Side]]:
        if self.over != "image":
            yield 0, (input, target), Side(side.sample_weight, side.valid)
            return
        axis = 1 if self.dim % input.dim() == 0 else 0  # the images' axis, where the classes come first
        for i in range(len(target)):
            weight, valid = (None if x is None else x[i : i + 1] for x in (side.sample_weight, side.valid))
            yield i, (input.narrow(axis, i, 1), target[i : i + 1]), Side(weight, valid)

    def _one(self, input: Tensor, target: Tensor, side: Side) -> Mean:
        stats, _ = self.metric._measure(input, target, side)
        value = self.metric.value(stats)
        known = torch.tensor([not math.isnan(value)])
        weight = torch.tensor([stats.n() / UNIT], dtype=torch.float64) if self.weighted else None
        return Mean.of(torch.tensor([value], dtype=torch.float64).nan_to_num(0.0), known, weight)
