"""CRL: samples that were right more often should be predicted with more confidence."""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, finfo, where

from confide.core.batch import expectation, following, tilt
from confide.core.fused import Context
from confide.core.groups import Group
from confide.core.knobs import knob
from confide.core.rows import Rows
from confide.core.simplex import bottom, cross_entropy, log_norm, lowered, predicted, softmax, top
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.history import PAIRED, History, example_index, history_of, shares
from confide.losses.loss import Card, Loss


class CRL(Loss):
    """Cross-entropy, and a ranking loss on the confidences of neighbours in the batch.

    Every call needs `index=`, the numbers of its samples in the training set, and every epoch ends with `epoch_end()`;
    what it remembers is part of `state_dict()`.
    """

    size: int = knob(default=0, low=0, high=10**12, doc="number of training samples; fixed when built")
    strength: float = knob(default=1.0, low=0, high=1000, doc="weight of the ranking loss (paper: lambda)")
    confidence: str = knob(default="max", choices=("max", "entropy", "margin"), doc="what is ranked, of the softmax")
    condition: str = knob(default="ranking", choices=("ranking", "margin"), doc="when it acts: as published, or ACLS")
    margin: float = knob(default=6.0, low=0, high=1000, doc="logit distance left alone, for condition='margin'")
    card = Card(
        title="Correctness ranking loss",
        cite="Moon et al., ICML 2020",
        group="ranking",
        formula="CE + strength * mean_n max(0, |h_n - h_m| - sgn(h_n - h_m) (c_n - c_m)), m the next row",
        summary="the more often a sample was right so far, the more confident it should be",
        differs=(
            "As released: rows are paired with the next one, both get a gradient, and h is how often a sample was "
            "right, less the least of all samples, over the number of epochs less that. What an epoch brings counts "
            "from its end on; the released code lets the least of all follow within the epoch and divides 0 by 0 "
            "where all samples were always right. The ACLS paper's supplement (Eq. 18) leaves out |h_n - h_m|, and its "
            "Table 2 holds only for the one of a pair that is too confident; the other has f < 0. "
            "condition='margin' is row 2 of its Table 6: f of CRL where ACLS's Eq. 11 holds, class by class, which is "
            "the gradient of no function and does not sum to zero."
        ),
        coupled=True,
        exempt=PAIRED,
    )
    limits = (({"strength": 0.0}, CrossEntropy()),)

    def __init__(self, size: int = 0, **settings: Any) -> None:
        super().__init__(size=size, **settings)

    def __post_init__(self) -> None:
        self.history = History(self.size) if self.size or self.condition == "ranking" else None

    @classmethod
    def example(cls, **settings: Any) -> "CRL":
        loss = cls(**{"size": 64} | settings)
        loss.history = History.example()
        return loss

    @property
    def traits(self) -> Card:
        return self.card if self.condition == "ranking" else _MARGIN

    def example_side(self, shape: tuple[int, ...]) -> dict[str, Tensor]:
        return example_index(shape)

    def epoch_end(self, group: Group = None) -> None:
        """Let what this epoch brought count from now on; with a `group`, what it brought to any of its processes."""
        history_of(self).epoch_end(group)

    def context(self, rows: Rows, index: Tensor | None = None) -> Context:
        return shares(self, rows, index) if self.condition == "ranking" else ()

    def loss(self, z: Tensor, y: Tensor, *context: Tensor) -> Tensor:
        penalty = self._ranked(z, *context) if context else self._held(z)
        return cross_entropy(z, y) + self.strength * penalty

    def shift(self, z: Tensor, y: Tensor, *context: Tensor) -> Tensor:
        slope = self.strength * tilt(softmax(z), self._worth(z))
        return self._raise(z, *context) * slope if context else -where(self._acts(z), slope, 0.0)

    def _ranked(self, z: Tensor, weight: Tensor, history: Tensor) -> Tensor:
        """The ranking loss of each row with the next."""
        return self._pairs(z, weight, history)[2].relu().view_as(weight)

    def _raise(self, z: Tensor, weight: Tensor, history: Tensor) -> Tensor:
        """How far each row's confidence is to rise, for the sake of the next row and of the one before."""
        partner, order, lack = self._pairs(z, weight, history)
        up, w = order * (lack > 0), weight.flatten()
        down = torch.zeros_like(w).index_add(0, partner, w * up) / where(w > 0, w, 1.0)
        return (up - down).view_as(weight).unsqueeze(1)

    def _pairs(self, z: Tensor, weight: Tensor, history: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of each row: the next one, which of both ought to be the more confident, and by how much it is not."""
        h, c = history.flatten(), self._confidence(z).flatten()
        partner = following(weight.flatten() > 0)
        ahead = h - h[partner]
        return partner, ahead.sign(), ahead.abs() - ahead.sign() * (c - c[partner])

    def _held(self, z: Tensor) -> Tensor:
        """The confidence as a function of those logits on which Eq. 11 acts; the others are held still."""
        acts = self._acts(z)
        return (self._confidence(where(acts, z, z.detach())) * acts.any(1, keepdim=True)).squeeze(1)

    def _acts(self, z: Tensor) -> Tensor:
        """Eq. 11 of the ACLS paper."""
        z = z.detach()
        return where(predicted(z), top(z) - bottom(z), top(z) - z) >= self.margin

    def _confidence(self, z: Tensor) -> Tensor:
        return expectation(softmax(z), self._worth(z)) + float(self.confidence == "entropy")

    def _worth(self, z: Tensor) -> Tensor:
        """What the probability of each class is worth: confidence is its expectation (plus 1, for the entropy)."""
        if self.confidence == "entropy":
            low = lowered(z)
            return (low - log_norm(low)) / math.log(z.shape[1])
        first = predicted(z.detach())
        if self.confidence == "max":
            return first.to(z.dtype)
        return first.to(z.dtype) - predicted(where(first, finfo(z.dtype).min, z.detach())).to(z.dtype)


_MARGIN = replace(CRL.card, coupled=False, balanced=False, exempt={})
