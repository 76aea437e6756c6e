"""The one binning rule: (a, b], with 0 in the first bin and 1 in the last, on a grid of 7200 equal cells.

Every usual number of bins divides the grid, so one pass over the data serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from confide.core.errors import KnobError
from confide.core.stats import BITS, ONE, Fixed, Stats, scatter, to_units

CELLS = 7200
EDGE = ONE >> 24  # an edge is as wide as float32 resolves near 1, so that 0.6 in float32 is still the edge 0.6


def cell(confidence: Tensor) -> Tensor:
    """The grid cell of each confidence in [0, 1]; a value on an edge belongs to the cell below it."""
    return cell_of_units(to_units(confidence))


def cell_of_units(units: Tensor) -> Tensor:
    """The same from fixed point. Integers only: every device and dtype agrees on the cell."""
    above = (units - EDGE) * CELLS + (ONE - 1)
    return ((above >> BITS) - 1).clamp(0, CELLS - 1)


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
    """For each cell: how many rows, how many of them correct, and the sum of their confidences."""

    count: Tensor
    correct: Tensor
    confidence: Fixed

    @classmethod
    def of(cls, confidence: Tensor, correct: Tensor, keep: Tensor) -> Histogram:
        """Sort kept rows into the grid. The others go to one cell more, which is then cut off."""
        units = to_units(confidence)
        index = torch.where(keep, cell_of_units(units), CELLS)
        tally = scatter(torch.ones_like(index), index * 2 + correct, 2 * CELLS + 2).reshape(-1, 2)[:CELLS]
        sums = Fixed.spread(units, index, CELLS + 1)
        return cls(tally.sum(1), tally[:, 1].clone(), Fixed(sums.whole[:CELLS].clone(), sums.fraction[:CELLS].clone()))

    def fold(self, bins: int) -> Histogram:
        """The same sums over `bins` equal bins."""
        shape = (check_bins(bins), -1)
        count, correct = self.count.reshape(shape).sum(1), self.correct.reshape(shape).sum(1)
        return Histogram(count, correct, self.confidence.fold(bins))

    def rows(self) -> list[tuple[int, int, int]]:
        """(count, correct, confidence sum in units of 2**-32) of each cell, as exact Python integers."""
        return list(zip(self.count.tolist(), self.correct.tolist(), self.confidence.units(), strict=True))
