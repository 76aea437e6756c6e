"""Soft-binned ECE: the calibration error itself, with bins that overlap, so that it has a gradient."""

from collections.abc import Iterator

import torch
from torch import Tensor, finfo, where

from confide.core.batch import confidence, confidence_slope, correct, elsewhere, mean
from confide.core.fused import Context
from confide.core.groups import CHOICES, KIND, Group, alone
from confide.core.knobs import knob
from confide.core.rows import Rows, clean
from confide.core.simplex import LOG2_E, cross_entropy
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss


class SoftECE(Loss):
    """Cross-entropy, and the root mean square gap between confidence and accuracy over soft bins."""

    strength: float = knob(default=1.0, low=0, high=1000, doc="weight of the error (paper: beta)")
    bins: int = knob(default=15, low=1, high=1000, doc="number of bins, with equal distances")
    temperature: float = knob(default=0.01, low=1e-6, high=100, doc="how far bins overlap (paper: T)")
    group: Group = knob(default=None, choices=CHOICES, kind=KIND, doc="processes whose batches count as one")
    card = Card(
        title="Soft-binned expected calibration error",
        cite="Karandikar et al., NeurIPS 2021",
        group="batch statistics",
        formula=(
            "CE + strength * sqrt(sum_b S_b/N (conf_b - acc_b)^2), "
            "row n in bin b by softmax_b(-(c_n - xi_b)^2 / temperature)"
        ),
        summary="gaps of one bin cannot be paid for by those of another",
        differs=(
            "As released: the norm is L2 and a root is drawn, the middles of the bins are xi_b = (b - 1/2)/B, whether "
            "a row is right is held still. The released code counts a bin with less than 1e-5 rows as if it had that "
            "many; here only a bin that no row reaches is left out. At an error of exactly 0 the gradient of the root "
            "is taken as 0."
        ),
        masked=True,
        coupled=True,
        exempt={
            "accumulation_is_one_batch": "the error of the whole batch is not the sum of those of its parts",
        },
    )
    limits = (({"strength": 0.0}, CrossEntropy()),)

    def context(self, rows: Rows) -> Context:
        if alone(self.group):
            return ()
        return elsewhere(self._bins, clean(rows.z, rows.y, self.ignore_index, self.weight), self.group)

    def loss(self, z: Tensor, y: Tensor, weight: Tensor, *others: Tensor) -> Tensor:
        share, excess = self._bins(z, y, weight, *others)
        return cross_entropy(z, y) + self.strength * self._error(share, excess)

    def shift(self, z: Tensor, y: Tensor, weight: Tensor, *others: Tensor) -> Tensor:
        share, excess = self._bins(z, y, weight, *others)
        error, gaps = self._error(share, excess), excess / _filled(share)
        rate = where(error > 0, self.strength / where(error > 0, error, 1.0), 0.0)
        return -rate * self._slope(z, y, gaps) * confidence_slope(z)

    def _bins(
        self, z: Tensor, y: Tensor, weight: Tensor, share: Tensor | float = 0.0, excess: Tensor | float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """Each bin's share of the rows, and what its confidence exceeds its accuracy by, times that share."""
        surplus = confidence(z) - correct(z, y)
        pairs = [(mean(member, weight), mean(member * surplus, weight)) for _, member in self._members(z)]
        shares, excesses = (torch.cat(found, 1) for found in zip(*pairs, strict=True))
        return shares + share, excesses + excess

    def _members(self, z: Tensor) -> Iterator[tuple[float, Tensor]]:
        """The middle of each bin, and how far each row belongs to it; not all at once, for the sake of memory."""
        c = confidence(z)
        nearest = ((c.detach() * self.bins).floor().clamp(max=self.bins - 1) + 0.5) / self.bins
        middles = [(number + 0.5) / self.bins for number in range(self.bins)]

        def near(middle: float) -> Tensor:
            return (((c - nearest).square() - (c - middle).square()) * (LOG2_E / self.temperature)).exp2()

        total = sum((near(middle) for middle in middles), start=torch.zeros_like(c))
        return ((middle, near(middle) / total) for middle in middles)

    def _slope(self, z: Tensor, y: Tensor, gaps: Tensor) -> Tensor:
        """How fast half the squared error grows with a row's confidence, but for the row's share of all."""
        surplus = confidence(z) - correct(z, y)
        # A row that grows more confident moves its surplus with it, and itself toward the bins above.
        moved = middles = worth = drawn = torch.zeros_like(surplus)
        for (middle, member), gap in zip(self._members(z), gaps.unbind(1), strict=True):
            gap = gap.unsqueeze(1)
            gain = member * (gap * surplus - gap.square() / 2)
            moved, middles = moved + member * gap, middles + member * middle
            worth, drawn = worth + gain, drawn + gain * middle
        return moved + (drawn - worth * middles) * (2 / self.temperature)

    def _error(self, share: Tensor, excess: Tensor) -> Tensor:
        square = (excess.square() / _filled(share)).sum()
        return where(square > 0, where(square > 0, square, 1.0).sqrt(), 0.0)


def _filled(share: Tensor) -> Tensor:
    """Shares to divide by."""
    return share.clamp(min=finfo(share.dtype).tiny)
