"""The one binning rule: (a, b], with 0 in the first bin and 1 in the last, on a grid of 7200 equal cells.

Every usual number of bins divides the grid, so one pass over the data serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from confide.core.errors import KnobError
from confide.core.stats import BITS, ONE, Fixed, Stats, exactly, scatter, to_units

CELLS = 7200
EDGE = ONE >> 24  # an edge is as wide as float32 resolves near 1, so that 0.6 in float32 is still the edge 0.6

EXACT = 1 << 20  # so many numbers up to 2**32 add up in float64 without rounding


def cell(confidence: Tensor) -> Tensor:
    """The grid cell of each confidence in [0, 1]; a value on an edge belongs to the cell below it."""
    return cell_of_units(to_units(confidence))


def cell_of_units(units: Tensor, cells: int = CELLS) -> Tensor:
    """The same from fixed point. Integers only: every device and dtype agrees on the cell."""
    above = (units - EDGE) * cells + (ONE - 1)
    return ((above >> BITS) - 1).clamp(0, cells - 1)


def check_bins(bins: int) -> int:
    """Return `bins` if the grid splits into that many equal bins, else say which numbers near it would do."""
    if isinstance(bins, bool) or not hasattr(bins, "__index__"):
        raise KnobError(f"bins must be a whole number, got {bins!r}")
    if bins < 1 or CELLS % bins:
        raise KnobError(f"bins={bins} does not divide the grid of {CELLS} cells; nearest that do: {_near(bins)}")
    return int(bins)


def edges(bins: int) -> list[float]:
    """The `bins + 1` edges, each the float nearest to k / bins."""
    return [k / bins for k in range(check_bins(bins) + 1)]


def _near(bins: int) -> str:
    fits = [n for n in range(1, CELLS + 1) if CELLS % n == 0]
    below = [n for n in fits if n < bins][-1:]
    above = [n for n in fits if n > bins][:1]
    return " and ".join(str(n) for n in below + above)


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Stats):
    """For each cell: the rows, their weight, the weight of the correct ones, and their weighted confidences.

    Cells may have axes before the grid's, one a class, say. Unweighted, `mass` is `count`; under a soft target a row is
    as correct as the probability that the target gives to the predicted class.
    """

    count: Tensor
    mass: Fixed
    hits: Fixed
    confidence: Fixed
    square: Fixed  # of all weights, for the number of equally weighted rows that would be as informative

    @classmethod
    def blank(cls, *shape: int) -> Histogram:
        """No rows."""
        none = Fixed.zeros(*shape)
        return cls(torch.zeros(shape, dtype=torch.int64), none, none, none, Fixed.zeros())

    @classmethod
    def of(cls, confidence: Tensor, hit: Tensor, keep: Tensor, weight: Tensor | None = None) -> Histogram:
        """Sort kept rows into the grid of CELLS cells."""
        if weight is None and hit.dtype == torch.bool:
            return cls._counted(confidence, hit, keep)
        units = to_units(confidence)
        index = torch.where(keep, cell_of_units(units), CELLS)
        w = torch.ones_like(exactly(confidence)) if weight is None else exactly(weight)
        w = torch.where(keep, w, 0.0)
        mass, hits, total = (
            Fixed.spread(to_units(x), index, CELLS + 1).head(CELLS) for x in (w, w * hit, w * exactly(confidence))
        )
        count = scatter(torch.ones_like(index), index, CELLS + 1)[:CELLS].clone()
        return cls(count, mass, hits, total, Fixed.total(w * w))

    @classmethod
    def _counted(cls, confidence: Tensor, hit: Tensor, keep: Tensor) -> Histogram:
        """Without weights everything but the confidences is a count."""
        units = (exactly(confidence) * ONE).round_()
        index = cell_of_scaled(units, CELLS).mul_(2).add_(hit)
        index = index if bool_all(keep) else torch.where(keep, index, 2 * CELLS)
        tally, sums = tally_of(index, units, 2 * CELLS + 1)
        pairs = tally[: 2 * CELLS].reshape(CELLS, 2)
        count, hits = pairs.sum(1), pairs[:, 1].clone()
        total = sums.head(2 * CELLS).fold(CELLS)
        return cls(count, Fixed.of_counts(count), Fixed.of_counts(hits), total, Fixed.of_counts(count.sum()))

    def fold(self, bins: int) -> Histogram:
        """The same sums over `bins` equal bins, whose number must divide that of the cells."""
        lead = self.count.shape[:-1]
        if self.count.shape[-1] % bins:
            raise KnobError(f"{self.count.shape[-1]} cells cannot become {bins} bins")
        count = self.count.reshape(*lead, bins, -1).sum(-1)
        return Histogram(count, self.mass.fold(bins), self.hits.fold(bins), self.confidence.fold(bins), self.square)

    def n(self) -> int:
        return int(self.count.reshape(-1, self.count.shape[-1]).sum(-1).max()) if self.count.numel() else 0

    def rows(self) -> list[tuple[int, int, int, int]]:
        """(count; mass, hits and confidences in units of 2**-32) of each cell, as exact Python integers."""
        parts = (self.count.reshape(-1).tolist(), self.mass.units(), self.hits.units(), self.confidence.units())
        return list(zip(*parts, strict=True))


def bool_all(mask: Tensor) -> bool:
    """Whether all are set, where asking does not wait for a device; else False."""
    return mask.device.type == "cpu" and bool(mask.all())


def cell_of_scaled(units: Tensor, cells: int) -> Tensor:
    """`cell_of_units` of whole numbers in float64: the same cells, since every step is exact, and faster."""
    if units.dtype != torch.float64:
        return cell_of_units(units.to(torch.int64), cells)
    above = (units - EDGE).mul_(cells / ONE).ceil_().sub_(1)
    return above.to(torch.int64).clamp_(0, cells - 1)  # in this order NaN lands in a cell, too


def tally_of(index: Tensor, units: Tensor, size: int) -> tuple[Tensor, Fixed]:
    """How often each index occurs, and the sum of its `units`: whole numbers in floating point, at most 2**32.

    On the CPU bincount adds them in float64, which is exact as long as no sum passes 2**53.
    """
    if index.device.type != "cpu":
        return scatter(torch.ones_like(index), index, size), Fixed.spread(units.to(torch.int64), index, size)
    count, total = torch.zeros(size, dtype=torch.int64), Fixed.zeros(size)
    for part, values in zip(index.split(EXACT), units.split(EXACT), strict=True):
        count += torch.bincount(part, minlength=size)
        sums = torch.bincount(part, values, minlength=size).to(torch.int64)
        total = total + Fixed.carried(torch.zeros_like(sums), sums)
    return count, total
