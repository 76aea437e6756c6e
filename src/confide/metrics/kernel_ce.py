"""KernelCE: the calibration error of all probabilities together, by a kernel on the simplex."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from confide.core.errors import KnobError
from confide.core.stats import ONE, Stats, exactly, to_units
from confide.metrics.estimate import Span
from confide.metrics.intervals import Z
from confide.metrics.items import Items
from confide.metrics.metric import Metric, Options

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

KEEP = 2000
_GOLDEN = 0x1E3779B97F4A7C15  # odd; multiples of it look random


@dataclass(frozen=True, eq=False, repr=False)
class Sample(Stats):
    """At most KEEP rows: key, weight, probabilities and target in units of 2**-32.

    Of more rows those with the smallest keys are kept. A key depends on the row's numbers alone, so the sample does not
    depend on the order of the rows or on how they were split.
    """

    count: Tensor
    rows: Tensor  # (n, 2 + 2 classes)

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        rows = torch.cat((self.rows, other.rows.to(self.rows.device)))
        return type(self)(self.count + other.count.to(self.count.device), _smallest(rows))

    def pack(self, rank: int = 0, world: int = 1) -> Tensor:
        places = torch.zeros((world, KEEP, self.rows.shape[1]), dtype=torch.int64, device=self.rows.device)
        if world:  # none for clusters, which keep no row
            places[rank, : len(self.rows)] = self.rows
        return torch.cat((self.count.reshape(1), places.reshape(-1)))

    def packed_length(self, world: int = 1) -> int:
        return 1 + world * KEEP * self.rows.shape[1]

    def unpack(self, vector: Tensor, world: int = 1) -> Self:
        rows = vector[1:].reshape(world * KEEP, self.rows.shape[1])
        return type(self)(vector[0].clone(), _smallest(rows[rows[:, 1] > 0]))


class KernelCE(Metric[Sample]):
    """Squared kernel calibration error (SKCE) of the whole probability vector; 0 for a calibrated model.

    The unbiased value may be below 0; `biased=True` counts each row with itself, too, and is never. Exact up to 2,000
    rows; beyond, it is that of 2,000 rows drawn by a checksum of their numbers, and its interval is theirs.
    """

    definition = (
        "Squared kernel calibration error (Widmann et al. 2019), unbiased: mean over pairs i < j of "
        "exp(-|p_i - p_j| / width) (e_yi - p_i) . (e_yj - p_j), |.| Euclidean, width the median distance unless given."
    )
    classwise = True
    exempt: ClassVar = {
        "weights_count_rows": "two copies of a row are a pair, one row of weight 2 is not; and its distances count once"
    }

    def __init__(self, *, width: float | None = None, biased: bool = False, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        if width is not None and not width > 0:
            raise KnobError(f"width must be above 0, got {width}")
        self.width, self.biased = width, biased

    def settings(self) -> dict[str, Any]:
        return {"width": self.width, "biased": self.biased, **super().settings()}

    def observe(self, items: Items) -> Sample:
        p, q = (to_units(exactly(x if items.axis == 1 else x.t())) for x in (items.p, items.target()))
        weight = torch.ones_like(exactly(items.confidence)) if items.weight is None else exactly(items.weight)
        rows = torch.cat((to_units(weight)[:, None], p, q), 1)[items.keep]
        rows = torch.cat((_keys(rows)[:, None], rows), 1)
        return Sample(items.keep.sum(), _smallest(rows))

    def brief(self, stats: Sample) -> Sample:
        return Sample(stats.count, stats.rows[:0])

    def value(self, stats: Sample) -> float:
        if len(stats.rows) < (1 if self.biased else 2):
            return float("nan")
        pairs, weight = self._pairs(stats)
        if self.biased:
            return float(pairs.sum() / weight.sum() ** 2)
        own = pairs.diagonal().sum()
        return float((pairs.sum() - own) / (weight.sum() ** 2 - (weight**2).sum()))

    def blank(self, classes: int) -> Sample:
        return Sample(torch.zeros((), dtype=torch.int64), torch.zeros((0, 2 + 2 * classes), dtype=torch.int64))

    def span(self, stats: Sample, clusters: list[Sample]) -> Span:
        """From the variance of the mean over pairs, to first and second order."""
        n = len(stats.rows)
        if n < 3:
            return Span()
        pairs, _ = self._pairs(stats)
        pairs.fill_diagonal_(0)
        rows = pairs.sum(1) / (n - 1)
        variance = 4 * float(rows.var()) / n + 2 * float((pairs**2).sum()) / (n * (n - 1)) ** 2
        value, half = self.value(stats), Z * math.sqrt(variance)
        note = "rows are taken as independent: this metric makes no use of unit="
        if stats.n() > n:
            note = f"of {n:,} of {stats.n():,} rows; {note}"
        return Span(max(value - half, 0.0), max(value + half, 0.0), 0.0, note=note)

    def _pairs(self, stats: Sample) -> tuple[Tensor, Tensor]:
        """Kernel times product of the weighted gaps, of all pairs, and the weights."""
        numbers = stats.rows[:, 1:].cpu().double() / ONE
        weight, (p, q) = numbers[:, 0], numbers[:, 1:].chunk(2, 1)
        distance = torch.cdist(p, p, compute_mode="donot_use_mm_for_euclid_dist")
        width = self.width or float(distance.median()) or 1.0
        gap = (q - p) * weight[:, None]
        return torch.exp(-distance / width) * (gap @ gap.t()), weight


def _keys(rows: Tensor) -> Tensor:
    """A number for each row that looks random and depends on its numbers alone. int64 wraps around."""
    factors = (torch.arange(rows.shape[1], device=rows.device) * 2 + 1) * _GOLDEN
    key = (rows * factors).sum(1)
    key = (key ^ (key >> 29)) * 0x3F58476D1CE4E5B9
    return (key ^ (key >> 32)) * _GOLDEN


def _smallest(rows: Tensor) -> Tensor:
    """The rows with the smallest keys, in their order."""
    return rows[rows[:, 0].argsort(stable=True)[:KEEP]]
