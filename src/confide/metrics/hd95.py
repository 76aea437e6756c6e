"""HD95: how far predicted and true borders lie apart, all but the worst 5 %."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from confide.core.errors import InputError, MissingExtra
from confide.core.rows import arrange
from confide.core.sums import Mean
from confide.metrics.estimate import Span
from confide.metrics.intervals import mean_span
from confide.metrics.items import Items
from confide.metrics.layout import Side, items
from confide.metrics.means import mean_of
from confide.metrics.metric import Metric, Options

if TYPE_CHECKING:
    from typing_extensions import Unpack


class HD95(Metric[Mean]):
    """Mean over images and foreground classes of the 95th percentile Hausdorff distance, by MONAI.

    spacing: the size of a pixel along each axis. A class that is neither in an image nor predicted there has no value.
    One that is in only one of the two counts as the image's diagonal, the worst that there is: not as 0, as in code
    that flatters missed objects.
    """

    definition = (
        "Mean over images and classes 1..C-1 of the 95th percentile of the distances between predicted and true "
        "borders, both ways; the image's diagonal where only one of them exists, left out where neither does."
    )

    whole = True

    def __init__(self, *, spacing: Sequence[float] | None = None, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        if self.region != "all":
            raise InputError("HD95 compares whole regions; it takes no region=")
        self.spacing = None if spacing is None else tuple(map(float, spacing))
        _monai()

    def settings(self) -> dict[str, Any]:
        return {"spacing": self.spacing, **super().settings()}

    def observe(self, items: Items) -> Mean:
        raise NotImplementedError("HD95 measures whole images, not pieces")

    def value(self, stats: Mean) -> float:
        return mean_of(stats)

    def blank(self, classes: int) -> Mean:
        return Mean.blank()

    def span(self, stats: Mean, clusters: list[Mean]) -> Span:
        return mean_span(stats, clusters)

    def _measure(self, input: Tensor, target: Tensor, side: Side) -> tuple[Mean, dict[int, Mean]]:
        for _ in items(input, target, self._door, side):  # refuses what must be refused
            pass
        if target.is_floating_point() or target.dim() < 3 or side.sample_weight is not None:
            raise InputError("HD95 needs index targets (N, d1, d2) or (N, d1, d2, d3), and takes no sample_weight")
        axis = arrange(input, target, self.dim).axis
        classes = input.shape[axis]
        guess = input.max(axis).indices
        known = torch.ones_like(target, dtype=torch.bool) if self.ignore_index is None else target != self.ignore_index
        guess, truth = (torch.where(known, x.long(), 0) for x in (guess, target))
        values = self._distances(guess, truth, classes)
        keep = ~values.isnan()
        if side.valid is not None:
            keep = keep & side.valid.reshape(-1, 1).to(keep.device)
        number = values.nan_to_num(0.0)
        clusters: dict[int, Mean] = {}
        if side.unit is not None:
            slots = side.unit.slots()[side.unit.codes]
            for slot in slots.unique().tolist():
                clusters[slot] = Mean.of(number.reshape(-1), (keep & (slots == slot)[:, None]).reshape(-1))
        return Mean.of(number.reshape(-1), keep.reshape(-1)), clusters

    def _distances(self, guess: Tensor, truth: Tensor, classes: int) -> Tensor:
        """(images, classes - 1); NaN where there is nothing to compare."""
        hot = [torch.nn.functional.one_hot(x.cpu(), classes).movedim(-1, 1).float() for x in (guess, truth)]
        spacing = self.spacing or (1.0,) * (guess.dim() - 1)
        with warnings.catch_warnings():  # MONAI warns of its own calls, and of missing classes, which we look after
            warnings.simplefilter("ignore")
            found = _monai()(*hot, include_background=False, percentile=95, spacing=list(spacing)).double()
        here = [x[:, 1:].flatten(2).any(-1) for x in hot]
        diagonal = math.sqrt(sum(((n - 1) * s) ** 2 for n, s in zip(guess.shape[1:], spacing, strict=True)))
        found = torch.where(here[0] ^ here[1], diagonal, found)
        return torch.where(here[0] | here[1], found, math.nan)


def _monai() -> Any:
    try:
        import scipy.ndimage  # noqa: F401 (MONAI measures distances with it)
        from monai.metrics.hausdorff_distance import compute_hausdorff_distance
    except ImportError:
        raise MissingExtra("monai and scipy", "segmentation") from None
    return compute_hausdorff_distance
