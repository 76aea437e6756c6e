"""What a metric reads off a piece of the data: probabilities, the predicted class, whether it is right.

Read once, however many metrics look. Each row's bits are the same alone, in any batch and in any layout.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from confide.core.stats import exactly

SKIP = -1  # the label of a row that counts for nothing
FEW = 32  # up to this many classes lie along axis 0, where a step over all rows takes them one class at a time


class Items:
    """Rows on which nothing is left to decide. Write into none of its tensors: they may be the caller's own.

    `x` holds logits, or probabilities if `probs`, with the classes on `axis`: 0 for few classes, else 1. `y` are
    labels, SKIP where a row counts for nothing; `soft` are probabilities shaped like `x`, zeros in such rows, or None.
    """

    def __init__(
        self, x: Tensor, y: Tensor, axis: int, soft: Tensor | None = None, weight: Tensor | None = None, *, probs: bool
    ) -> None:
        self.x, self.y, self.axis, self.soft, self.weight, self.probs = x, y, axis, soft, weight, probs
        self.classes = x.shape[axis]

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def keep(self) -> Tensor:
        """Rows that count."""
        return self.y != SKIP

    @cached_property
    def peak(self) -> Tensor:
        """The largest number of each row."""
        return self.x.amax(self.axis)

    @cached_property
    def p(self) -> Tensor:
        """Probabilities, with the classes on `axis`."""
        if self.probs:
            return self.x.clamp(0, 1)
        return self._shares[0] / self._shares[1] if self.axis == 0 else self.x.softmax(-1)

    @cached_property
    def z(self) -> Tensor:
        """Logits, with the classes on `axis`; of probabilities their logarithms."""
        return self.x.clamp(0, 1).log() if self.probs else self.x

    @cached_property
    def confidence(self) -> Tensor:
        """The probability of the predicted class."""
        if self.probs:
            return self.peak.clamp(0, 1)
        return 1 / self._shares[1] if self.axis == 0 else self.p.amax(-1)

    @cached_property
    def guess(self) -> Tensor:
        """The predicted class, the lowest of a tie. From the logits: close ones may share a probability."""
        if self.axis == 1 and self.x.device.type == "cpu":
            return torch.from_numpy(self.x.detach().numpy().argmax(1))  # the first of a tie, and faster than torch's
        return self.x.max(self.axis).indices

    @cached_property
    def hit(self) -> Tensor:
        """Whether the predicted class is the label; of a soft target the probability that it gives to that class."""
        if self.soft is not None:
            return self.at(self.soft, self.guess)
        if self.axis == 0 and self._untied:  # much faster than to look for the place of the maximum
            return self.at(self.x, self.y.clamp(min=0)) == self.peak
        return self.guess == self.y

    @cached_property
    def nll(self) -> Tensor:
        """Minus the log probability of the label, or its mean under a soft target."""
        if self.soft is not None:
            logp = self._log_p
            return -self.over_classes(torch.where(self.soft > 0, self.soft * logp, 0.0))
        label = self.y.clamp(min=0)
        if self.probs:
            return -exactly(self.at(self.x, label).clamp(0, 1)).log()
        if self.axis == 1:
            return (self.peak - self.at(self.x, label)) - self.confidence.log()  # spares a pass over all logits
        return self._shares[1].log() - (self.at(self.x, label) - self.peak)

    def at(self, x: Tensor, classes: Tensor) -> Tensor:
        """Of a tensor shaped like `x`, the number of one class a row."""
        return x.gather(self.axis, classes.unsqueeze(self.axis)).squeeze(self.axis)

    def target(self) -> Tensor:
        """The soft target, or the label as one, in float64 where there is one; zeros in rows that do not count."""
        if self.soft is not None:
            return exactly(self.soft)
        zeros = torch.zeros_like(exactly(self.x[:1, :1])).expand(self.x.shape).clone()
        hot = self.keep.to(zeros.dtype).unsqueeze(self.axis)
        return zeros.scatter_(self.axis, self.y.clamp(min=0).unsqueeze(self.axis), hot)

    def over_classes(self, x: Tensor) -> Tensor:
        """The sum over classes, in an order that no batch size changes."""
        if self.axis == 1:
            return x.sum(1)
        total = x[0].clone()
        for one in x[1:]:
            total += one
        return total

    def take(self, chosen: Tensor) -> Items:
        """Some of the rows, with what has been read off them."""
        along, chosen = 1 - self.axis, chosen.to(self.x.device)
        soft = None if self.soft is None else self.soft.index_select(along, chosen)
        weight = None if self.weight is None else self.weight[chosen]
        x = self.x.index_select(along, chosen)
        some = Items(x, self.y[chosen], self.axis, soft, weight, probs=self.probs)
        for name in ("confidence", "guess", "hit", "nll"):
            if name in self.__dict__:
                some.__dict__[name] = self.__dict__[name][chosen]
        return some

    @cached_property
    def _shares(self) -> tuple[Tensor, Tensor]:
        """exp(z - max) and its sum, of classes on axis 0."""
        e = (self.x - self.peak).exp_()
        return e, self.over_classes(e)

    @cached_property
    def _log_p(self) -> Tensor:
        if self.probs:
            return self.z
        return self.x.log_softmax(-1) if self.axis == 1 else self.x - self.peak - self._shares[1].log()

    @cached_property
    def _untied(self) -> bool:
        """Whether every row has one maximum only. Not asked where the answer would have to be waited for."""
        if self.x.device.type != "cpu":
            return False
        return _equal(self.x, self.peak.unsqueeze(0)) == len(self)


def _equal(x: Tensor, y: Tensor) -> int:
    """How many are equal. Compared into floating point, which is several times faster to write and to add than bool."""
    return int(torch.eq(x, y, out=torch.empty_like(x)).sum())  # float32 counts exactly what a piece holds
