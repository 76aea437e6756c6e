"""CPC: pairwise constraints that set the true class apart and hold the others together."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, cat, where
from torch.utils.checkpoint import checkpoint

from confide.core.compiler import traced
from confide.core.knobs import knob
from confide.core.simplex import LOG2_E, cross_entropy, one_hot
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss

BUDGET = 1 << 24  # numbers in the largest tensor of pairs, or those of the logits where they are more


class CPC(Loss):
    """Cross-entropy with a logistic penalty on every pair of classes.

    Time grows with the square of the number of classes. Memory does not, except inside your own torch.compile, whose
    backward pass stores a number for every pair.
    """

    pairs: float = knob(default=0.1, low=0, high=100, doc="weight of true against other (paper: lambda_1, 1v1)")
    rest: float = knob(default=1.0, low=0, high=100, doc="weight of other against other (paper: lambda_2, BE)")
    card = Card(
        title="Calibration by pairwise constraints",
        cite="Cheng and Vasconcelos, CVPR 2022",
        group="adaptive",
        formula="CE + pairs mean_k log(1 + p_k / p_y) + rest/4 mean_kl log((p_k + p_l)^2 / (p_k p_l)), k, l not y",
        summary="the true class beats each other one, and the others are drawn together",
        differs=(
            "The paper has plain sums, the authors released no code; means and factors here are those of the CALS "
            "code. That code divides by zero for two classes, where `rest` has no pairs and adds nothing here, and "
            "pairs every class with itself, which adds rest log(2) / (2 (C - 2)) and no gradient. The ACLS paper's "
            "Table 2 has the sign of the first term wrong for the other classes: it sharpens on both sides, and only "
            "`rest` softens."
        ),
    )
    limits = (({"pairs": 0.0, "rest": 0.0}, CrossEntropy()),)

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        q = one_hot(z, y)
        terms = [_forgetful(self._losses, z, q, *part) for part in _parts(z, q)]
        return cross_entropy(z, y) + cat(terms, 1).sum(1) - self._alone(z)

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        q = one_hot(z, y)
        return cat([self._shifts(z, q, *part) for part in _parts(z, q)], 1)

    def _losses(self, z: Tensor, q: Tensor, some: Tensor, label: Tensor) -> Tensor:
        """What some of the classes lose against all."""
        gap, against, _ = self._compared(z, q, some, label)
        return (against * (_closeness(gap).log1p() + (gap.abs() - gap) / 2)).sum(2)

    def _shifts(self, z: Tensor, q: Tensor, some: Tensor, label: Tensor) -> Tensor:
        gap, against, under = self._compared(z, q, some, label)
        closeness = _closeness(gap)
        less = where(gap > 0, closeness, 1.0) / (1 + closeness)  # how little of the two the first one has
        return (against * less - under * (1 - less)).sum(2)

    def _compared(self, z: Tensor, q: Tensor, some: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of some classes (axis 1) and all (axis 2): logit differences, and the weight of wishing one above the other.

        As the true class with probability q a class is to be above all others; as one of the rest, level with them.
        """
        some, label, all_, q = some.unsqueeze(2), label.unsqueeze(2), z.unsqueeze(1), q.unsqueeze(1)
        true, level = self._rates(z.shape[1])
        both = level * (1 - label - q)
        return some - all_, true * label + both, true * q + both

    def _alone(self, z: Tensor) -> float:
        """What the classes lose against themselves."""
        true, level = self._rates(z.shape[1])
        return (true + level * (z.shape[1] - 2)) * math.log(2)

    def _rates(self, classes: int) -> tuple[float, float]:
        level = self.rest / (2 * (classes - 1) * (classes - 2)) if classes > 2 else 0.0
        return self.pairs / (classes - 1), level


def _closeness(gap: Tensor) -> Tensor:
    """The smaller of two probabilities over the larger: all that losses and shifts need of the exponential."""
    return (gap.abs() * -LOG2_E).exp2()  # to base 2 as in `softmax`


def _parts(z: Tensor, q: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Some classes at a time, so that the tensors of their pairs stay within the budget."""
    if torch.compiler.is_compiling():
        return [(z, q)]  # a compiler adds pairs up without storing them
    size = max(1, BUDGET // max(1, z.numel()))
    return list(zip(z.split(size, 1), q.split(size, 1), strict=True))


def _forgetful(losses: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """Where autograd would keep the pairs of all parts for the backward pass, let it compute them anew."""
    if traced() or not torch.is_grad_enabled():
        return losses(*tensors)
    result: Tensor = checkpoint(losses, *tensors, use_reentrant=False, preserve_rng_state=False)
    return result
