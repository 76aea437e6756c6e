"""Softmax and its relatives over axis 1, finite at logits of +-1e4, ties going to the lowest class.

They are written from the same few operations, so that a compiler merges what several of them share.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

LOG2_E = math.log2(math.e)


def top(z: Tensor) -> Tensor:
    """The largest logit; its gradient goes to the lowest class that holds it."""
    # amax would share the gradient out; without one it is the same number, and merges with that of `lowered`.
    return z.max(1, keepdim=True).values if z.requires_grad else z.amax(1, keepdim=True)


def bottom(z: Tensor) -> Tensor:
    """The smallest logit; its gradient goes to the lowest class that holds it."""
    return z.min(1, keepdim=True).values if z.requires_grad else z.amin(1, keepdim=True)


def lowered(z: Tensor) -> Tensor:
    """Logits with the largest of each row at 0: nothing overflows, and no digit is lost to a common offset."""
    # The shift cancels in all that follows, so no gradient has to flow through it.
    return z - z.detach().amax(1, keepdim=True)


def log_norm(low: Tensor) -> Tensor:
    """The logarithm of the softmax's denominator, of lowered logits."""
    return low.exp().sum(1, keepdim=True).log()


def softmax(z: Tensor) -> Tensor:
    """Probabilities."""
    low = lowered(z)
    if z.dim() == 2:  # the CPU compiler keeps an exp that is used twice as an array, in which the gradient then grows
        exp = low.exp()
        return exp * (1 / exp.sum(1, keepdim=True))
    # Of dense logits it would be one array more, so this is another function of them to it: not exp / sum(exp).
    return ((low - log_norm(low)) * LOG2_E).exp2()


def one_hot(z: Tensor, y: Tensor) -> Tensor:
    """The target as probabilities shaped like `z`; soft targets are that already."""
    return y if y.is_floating_point() else (_classes(z) == y.to(z.dtype).unsqueeze(1)).to(z.dtype)


def lowest(mask: Tensor, z: Tensor) -> Tensor:
    """Of the marked classes keep the lowest."""
    # Not argmax, which is several times slower than a minimum under the CPU compiler.
    classes = _classes(z)
    return classes == torch.where(mask, classes, float(z.shape[1])).amin(1, keepdim=True)


def predicted(z: Tensor) -> Tensor:
    """A mask of the predicted class."""
    return lowest(z == z.amax(1, keepdim=True), z)


def expected(loss: Callable[[Tensor], Tensor], z: Tensor, y: Tensor) -> Tensor:
    """A loss of the true class's log-probability, or its expectation under a soft target."""
    low = lowered(z)
    if y.is_floating_point():
        return (y * loss(_allowed(low - log_norm(low), y))).sum(1)
    return loss(low.gather(1, y.unsqueeze(1)) - log_norm(low)).squeeze(1)


def expected_shift(slope: Callable[[Tensor], Tensor], z: Tensor, y: Tensor) -> Tensor:
    """The label shift of `expected`, from the negated derivative of its loss (1 for cross-entropy)."""
    low = lowered(z)
    if y.is_floating_point():
        spared = y - y * slope(_allowed(low - log_norm(low), y))
        return softmax(z) * spared.sum(1, keepdim=True) - spared
    pull = slope(low.gather(1, y.unsqueeze(1)) - log_norm(low))
    # By softmax and one_hot themselves, so that where the slope is 0 the gradient is exactly 0.
    return (softmax(z) - one_hot(z, y)) * (1 - pull)


def power(x: Tensor, exponent: float) -> Tensor:
    """A power of positive numbers."""
    # Not x**exponent, whose compiled form is wrong once the exponent varies: Inductor tries special powers (a root, a
    # square) on an example and keeps what it found, without a guard.
    return (x.log() * exponent).exp()


def _allowed(log_p: Tensor, q: Tensor) -> Tensor:
    """Log-probabilities without the classes that a soft target rules out: masked with -inf they would give NaN."""
    return torch.where(q > 0, log_p, 0.0)


def cross_entropy(z: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of every row."""
    return expected(torch.neg, z, y)


def _classes(z: Tensor) -> Tensor:
    """Class numbers along axis 1, in floating point: exact up to 2**24 classes, and faster to compare than int64."""
    return torch.arange(z.shape[1], device=z.device, dtype=z.dtype).view(-1, *[1] * (z.dim() - 2))
