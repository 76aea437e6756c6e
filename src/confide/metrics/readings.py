"""What a metric reads off canonical rows. Each row's bits are the same alone or in any batch."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import pad

VECTOR = 16  # below this many classes the CPU softmax leaves its vector path and is some ten times slower


def softmax(z: Tensor) -> Tensor:
    """Probabilities over the last axis."""
    return _roomy(z).softmax(-1)[:, : z.shape[1]]


def top(z: Tensor) -> tuple[Tensor, Tensor]:
    """The predicted class (the lowest of a tie) and its probability.

    The class is taken from the logits: close logits may share a probability after rounding.
    """
    guess = z.max(-1).indices
    return guess, softmax(z).gather(-1, guess[:, None])[:, 0]


def nll(z: Tensor, y: Tensor) -> Tensor:
    """Minus the log probability of the label; of class 0 where the label is to be skipped."""
    logp = _roomy(z).log_softmax(-1)
    return -logp.gather(-1, y.clamp(min=0)[:, None])[:, 0]


def _roomy(z: Tensor) -> Tensor:
    """Columns of -inf change no probability and let short rows use the fast path."""
    if z.shape[1] >= VECTOR or z.device.type != "cpu":
        return z
    return pad(z, (0, VECTOR - z.shape[1]), value=float("-inf"))
