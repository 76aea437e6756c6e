"""Sums for metrics that need an order of the rows: every score up to a number of rows, beyond it the grid alone.

Up to KEEP rows such a metric is exact. Beyond, scores within one of the 7200 cells count as tied, and `Steps.coarse`
says so. The change depends on all the rows together, not on how they were split, so the bits are the same either way.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.core.bins import CELLS, Histogram, cell_of_units
from confide.core.stats import ONE, Fixed, Stats, exactly, scatter, to_units

if TYPE_CHECKING:
    from typing_extensions import Self

Array = NDArray[np.float64]
KEEP = 1 << 16
CLASS = 33  # where in a key the class begins: above a score of 1


@dataclass(frozen=True)
class Steps:
    """Distinct scores, rising: the weight of the rows that have one, and of the correct ones among them."""

    score: Array
    mass: Array
    hits: Array
    coarse: bool  # scores within a cell were taken as tied

    @property
    def total(self) -> float:
        return float(self.mass.sum())

    def flipped(self) -> Steps:
        """With the order reversed and errors in place of correct rows."""
        return Steps(-self.score[::-1], self.mass[::-1], (self.mass - self.hits)[::-1], self.coarse)


@dataclass(frozen=True, eq=False, repr=False)
class Ranks(Stats):
    """The grid, and per kept row its score, weight, and weight if correct, all in units of 2**-32."""

    grid: Histogram
    kept: Tensor  # (3, rows), none where there are more than KEEP rows

    @classmethod
    def blank(cls) -> Ranks:
        """No rows."""
        return cls(Histogram.blank(CELLS), torch.zeros((3, 0), dtype=torch.int64))

    @classmethod
    def of(cls, score: Tensor, hit: Tensor, keep: Tensor, weight: Tensor | None = None) -> Ranks:
        """Scores in [0, 1]."""
        grid = Histogram.of(score, hit, keep, weight)
        if len(score) > KEEP and int(grid.count.sum()) > KEEP:
            return cls(grid, torch.zeros((3, 0), dtype=torch.int64, device=score.device))
        w = torch.ones_like(exactly(score)) if weight is None else exactly(weight)
        return cls(grid, torch.stack([to_units(exactly(x)) for x in (score, w, w * hit)])[:, keep])

    @classmethod
    def by_class(
        cls, k: Tensor, score: Tensor, hit: Tensor, weight: Tensor, shape: tuple[int, int], rows: Fixed
    ) -> Ranks:
        """Scores of class k, any number a row, on a grid of (classes, cells); `rows` is the squared weight of rows."""
        units = to_units(exactly(score))
        index, size = k * shape[1] + cell_of_units(units, shape[1]), shape[0] * shape[1]
        parts = (Fixed.spread(to_units(x), index, size).reshape(*shape) for x in (weight, weight * hit, weight * score))
        mass, hits, total = parts
        grid = Histogram(scatter(torch.ones_like(index), index, size).reshape(shape), mass, hits, total, rows)
        kept = torch.stack((k << CLASS | units, to_units(weight), to_units(weight * hit)))
        return cls(grid, kept if len(index) <= KEEP else kept[:, :0])

    def steps_by_class(self) -> list[Steps]:
        """Steps of every class of a grid of (classes, cells)."""
        classes = range(self.grid.count.shape[0])
        if not self.kept.shape[1]:
            sums = (x.float().numpy() for x in (self.grid.mass, self.grid.hits, self.grid.confidence))
            return [_steps(*part) for part in zip(*sums, strict=True)]
        merged = _merged(self.kept).cpu().numpy()
        owner = merged[0] >> CLASS
        scores = (merged[0] & ((1 << CLASS) - 1)) / ONE
        own = [owner == k for k in classes]
        return [Steps(scores[mine], merged[1, mine] / ONE, merged[2, mine] / ONE, False) for mine in own]

    def n(self) -> int:
        return self.grid.n() if self.grid.count.dim() == 1 else int(self.grid.square.whole)

    def effective(self) -> float:
        """So many rows of equal weight would be as informative."""
        square = float(self.grid.square.float())
        return float(self.grid.mass.float().sum()) ** 2 / square if square else 0.0

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        grid = self.grid + other.grid
        full = int(grid.count.sum()) > KEEP
        kept = self.kept[:, :0] if full else torch.cat((self.kept, other.kept.to(self.kept.device)), 1)
        return dataclasses.replace(self, grid=grid, kept=kept)

    def tensors(self) -> dict[str, Tensor]:
        """With the kept rows in one order, whatever the order in which they came; rows with equal scores are one."""
        grid = {f"grid.{name}": tensor for name, tensor in self.grid.tensors().items()}
        return grid | {"kept": _merged(self.kept)}

    def pack(self, rank: int = 0, world: int = 1) -> Tensor:
        places = torch.zeros((world, 3, KEEP), dtype=torch.int64, device=self.kept.device)
        if world:  # none for clusters, which keep no row
            places[rank, :, : self.kept.shape[1]] = self.kept
        return torch.cat((self.grid.pack(), places.reshape(-1)))

    def packed_length(self, world: int = 1) -> int:
        return self.grid.packed_length() + world * 3 * KEEP

    def unpack(self, vector: Tensor, world: int = 1) -> Self:
        sums, places = vector.split([self.grid.packed_length(), world * 3 * KEEP])
        grid = self.grid.unpack(sums)
        kept = places.reshape(world, 3, KEEP).transpose(0, 1).reshape(3, -1)
        kept = kept[:, :0] if int(grid.count.sum()) > KEEP else kept[:, kept[1] > 0]
        return dataclasses.replace(self, grid=grid, kept=_merged(kept))

    def brief(self, cells: int) -> Ranks:
        """A coarser grid, and no row kept."""
        return Ranks(self.grid.fold(cells), self.kept[:, :0])

    def steps(self) -> Steps:
        """What a metric of ranks is computed from."""
        if self.kept.shape[1]:
            score, mass, hits = _merged(self.kept).cpu().numpy() / ONE
            return Steps(score, mass, hits, False)
        return steps_of(self.grid)


def steps_of(grid: Histogram) -> Steps:
    """Each cell as one step, at the mean of its scores."""
    return _steps(*(part.float().numpy() for part in (grid.mass, grid.hits, grid.confidence)))


def _steps(mass: Array, hits: Array, score: Array) -> Steps:
    full = mass > 0
    return Steps(score[full] / mass[full], mass[full], hits[full], True)


def _merged(kept: Tensor) -> Tensor:
    """Rising scores, with the weights of equal ones added up."""
    scores, place = torch.unique(kept[0], return_inverse=True)
    sums = torch.zeros((2, len(scores)), dtype=torch.int64, device=kept.device)
    return torch.cat((scores[None], sums.index_add_(1, place, kept[1:])))
