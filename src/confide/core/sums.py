"""The sums that most metrics need: of one number a row, and of classes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from confide.core.stats import LIMIT, Fixed, Stats, exactly


@dataclass(frozen=True, eq=False, repr=False)
class Mean(Stats):
    """What the weighted mean of one number a row needs, and the standard error of that mean.

    Numbers at or past LIMIT (or infinite) are counted in `wild`, not added; so are the squares of large numbers.
    """

    count: Tensor  # rows
    wild: Tensor  # rows whose number, and rows whose square could not be added
    sums: Fixed  # of w, w x, w**2, w**2 x and w**2 x**2

    @classmethod
    def of(cls, values: Tensor, keep: Tensor, weight: Tensor | None = None) -> Mean:
        x = exactly(values)
        w = torch.ones_like(x) if weight is None else exactly(weight)
        wx = w * x
        tame = keep & (wx.abs() < LIMIT)
        flat = tame & (wx.abs() < LIMIT**0.5)
        terms = [(keep, w), (tame, wx), (keep, w * w), (tame, w * wx), (flat, wx * wx)]
        totals = [Fixed.total(torch.where(mask, term, 0.0)) for mask, term in terms]
        wild = torch.stack(((keep & ~tame).sum(), (keep & ~flat).sum()))
        return cls(keep.sum(), wild, Fixed.stack(totals))

    @classmethod
    def blank(cls) -> Mean:
        """No rows."""
        return cls(torch.zeros((), dtype=torch.int64), torch.zeros(2, dtype=torch.int64), Fixed.zeros(5))


@dataclass(frozen=True, eq=False, repr=False)
class Tally(Stats):
    """For each class the weight of the rows with its label, of those predicted as it, and of those with both."""

    count: Tensor  # rows
    label: Fixed
    predicted: Fixed
    both: Fixed

    @classmethod
    def blank(cls, classes: int) -> Tally:
        """No rows."""
        none = Fixed.zeros(classes)
        return cls(torch.zeros((), dtype=torch.int64), none, none, none)
