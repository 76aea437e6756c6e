"""MMCE: rows of like confidence should be right as often as they say, measured by comparing all pairs of rows."""

from typing import NamedTuple

import torch
from torch import Tensor, where

from confide.core.batch import confidence, confidence_slope, correct, drawn, take
from confide.core.fused import Context
from confide.core.knobs import knob
from confide.core.rows import Rows
from confide.core.simplex import cross_entropy
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss


class MMCE(Loss):
    """Cross-entropy, and the squared kernel mean of what correctness and confidence differ by, within one process."""

    strength: float = knob(default=2.0, low=0, high=1000, doc="weight of the error (paper: lambda)")
    weighted: bool = knob(default=False, choices=(False, True), doc="right and wrong rows count alike, however many")
    width: float = knob(default=0.4, low=1e-3, high=100, doc="how far apart confidences are still compared")
    sample: int = knob(default=1024, low=2, high=1 << 16, doc="rows that are compared; of more, so many are drawn")
    card = Card(
        title="Maximum mean calibration error",
        cite="Kumar et al., ICML 2018",
        group="batch statistics",
        formula="CE + strength * mean_ij (a_i - c_i)(a_j - c_j) exp(-|c_i - c_j| / width), a_i = [right]",
        summary="a calibration error without bins, from all pairs of rows",
        differs=(
            "The paper adds the root, released code the square, as here. Of the weighted form released code draws the "
            "root, but divides by the numbers of right and wrong rows twice, so that it fades with the batch size and "
            "is no calibration error unless they are equal; here it is the square, divided once, as printed, and 0 "
            "where all rows are right or all are wrong, as released. Of more than `sample` rows each call draws one at "
            "random from each of `sample` equal runs, so that a batch of pixels costs no more than so many rows."
        ),
        masked=True,
        coupled=True,
        exempt={
            "accumulation_is_one_batch": "rows of one part of the batch are not compared with those of another",
        },
    )
    limits = (({"strength": 0.0}, CrossEntropy()),)

    def context(self, rows: Rows) -> Context:
        if rows.z.numel() <= self.sample * rows.z.shape[1]:
            return ()
        return drawn(self.row_weight(rows).flatten() > 0, self.sample)

    def loss(self, z: Tensor, y: Tensor, weight: Tensor, *chosen: Tensor) -> Tensor:
        rows = self._rows(z, y, weight, *chosen)
        error = rows.weight * rows.lack
        return cross_entropy(z, y) + self.strength * (error * (self._kernel(rows) * error).sum(1)).sum()

    def shift(self, z: Tensor, y: Tensor, weight: Tensor, *chosen: Tensor) -> Tensor:
        rows = self._rows(z, y, weight, *chosen)
        shared = self._kernel(rows) * rows.weight * rows.lack
        apart = (rows.confidence.unsqueeze(1) - rows.confidence).sign() / self.width
        slope = -2 * (rows.steepness * shared.sum(1) + rows.lack * (apart * shared).sum(1))
        if chosen:
            number, real = chosen
            slope = torch.zeros_like(weight).flatten().index_add(0, number, slope * real)
        rate = self.strength * weight.sum() * slope.view_as(weight).unsqueeze(1)
        return -rate * confidence_slope(z)

    def _rows(self, z: Tensor, y: Tensor, weight: Tensor, *chosen: Tensor) -> "_Compared":
        if chosen:
            number, real = chosen
            z, y, weight = take(z, number, z), take(y, number, z), take(weight, number, z) * real
        c, a, weight = confidence(z).flatten(), correct(z, y).flatten(), weight.flatten()
        right = wrong = weight.sum()
        if self.weighted:
            right, wrong = (weight * a).sum(), (weight * (1 - a)).sum()
        both = (right > 0) & (wrong > 0)
        hit, miss = (where(both, x / where(both, total, 1.0), 0.0) for x, total in ((a, right), (1 - a, wrong)))
        return _Compared(c, weight, hit * (1 - c) - miss * c, hit + miss)

    def _kernel(self, rows: "_Compared") -> Tensor:
        return (-(rows.confidence.unsqueeze(1) - rows.confidence).abs() / self.width).exp()


class _Compared(NamedTuple):
    """Rows to be compared with one another."""

    confidence: Tensor
    weight: Tensor
    lack: Tensor  # correctness less confidence, over the number of rows that it is a mean of
    steepness: Tensor  # how fast that falls with the confidence
