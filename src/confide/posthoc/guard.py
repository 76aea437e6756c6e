"""No fit may make its own data less likely: the NLL, and a mixture with the uncalibrated probabilities as a remedy."""

from __future__ import annotations

import torch
from torch import Tensor

from confide.posthoc.layout import SKIP, pieces


def nll(z: Tensor, y: Tensor) -> float:
    """Mean negative log-likelihood of the known labels, summed in float64."""
    z, y = last(z, y)
    total = sum(float(of_label(part.double(), labels).sum()) for part, labels in _with_labels(z, y))
    return -total / z.shape[0]


def of_label(z: Tensor, y: Tensor) -> Tensor:
    """The log-probability of each label."""
    return z.gather(1, y[:, None])[:, 0] - z.logsumexp(1)


def last(z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Dense logits and labels as rows that are known."""
    if z.dim() == 2:
        return z, y
    known = y != SKIP
    return z.movedim(1, -1)[known], y[known]


def blend(z: Tensor, raw: Tensor, share: Tensor | None) -> Tensor:
    """Log-probabilities of `z`, of which a `share` is mixed with those of `raw`."""
    if share is None:
        return z.log_softmax(1)
    return torch.logaddexp(share.log() + z.log_softmax(1), (1 - share).log() + raw.log_softmax(1))


def share_of(log_p: Tensor, raw: Tensor, y: Tensor) -> Tensor:
    """The share of the new probabilities at which the mixture makes the labels most likely.

    The NLL is convex in it, so bisection on its slope finds it; with nothing taken it is that of the raw ones.
    """
    new, old = (of_label(*last(x.double(), y)) for x in (log_p, raw))
    top = torch.maximum(new, old)
    new, old = (new - top).exp(), (old - top).exp()
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        slope = float(((new - old) / (middle * new + (1 - middle) * old)).sum())
        low, high = (middle, high) if slope > 0 else (low, middle)
    return torch.tensor(low, dtype=torch.float64)


def _with_labels(z: Tensor, y: Tensor) -> zip[tuple[Tensor, Tensor]]:
    parts = list(pieces(z))
    return zip(parts, torch.split(y, parts[0].shape[0]), strict=True)
