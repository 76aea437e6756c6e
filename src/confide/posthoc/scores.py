"""The NLL of logits scaled by one number, with its two derivatives, in one pass over memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

# Logits in a block. On the CPU it stays in the cache, and torch does not call its threads together for each small step.
ROOM = {"cpu": 1 << 15}
WIDE_ROOM = 1 << 26
KEPT = 1 << 26  # of more logits no lowered copy is kept


class At(NamedTuple):
    """The mean NLL at one scale."""

    value: float
    first: float
    second: float


class Scores:
    """Logits of labelled rows, lowered by their largest, classes first: sums over them run along contiguous rows."""

    def __init__(self, z: Tensor, y: Tensor) -> None:
        self.z = z
        self.rows = max(1, ROOM.get(z.device.type, WIDE_ROOM) // z.shape[1])
        self.top = z.amax(1)
        right = z.gather(1, y[:, None])[:, 0].double() - self.top.double()
        self.right = right.sum().item()  # 0: every label is on top
        self._blocks = list(self._lowered(z.dtype)) if z.numel() <= KEPT else None

    def some(self, y: Tensor, count: int) -> Scores:
        """Every so many rows."""
        stride = -(-len(self.z) // count)
        return Scores(self.z[::stride], y[::stride])

    def blocks(self, dtype: torch.dtype) -> Iterator[Tensor]:
        """Parts (C, k) of the lowered logits."""
        return iter(self._blocks) if self._blocks is not None and dtype == self.z.dtype else self._lowered(dtype)

    def at(self, scale: float, dtype: torch.dtype) -> At:
        """Value and derivatives of mean(logsumexp(scale z) - scale z_y) in the scale."""
        value = first = second = 0.0
        for low in self.blocks(dtype):
            e = (low * scale).exp_()
            s0 = e.sum(0).double()
            s1 = e.mul_(low).sum(0).double() / s0
            s2 = e.mul_(low).sum(0).double() / s0
            sums = torch.stack((s0.log().sum(), s1.sum(), (s2 - s1 * s1).sum())).tolist()
            value, first, second = value + sums[0], first + sums[1], second + sums[2]
        n = len(self.z)
        return At((value - scale * self.right) / n, (first - self.right) / n, second / n)

    def flat(self) -> At:
        """The same at scale 0, where all probabilities are equal: moments, without an exponential."""
        first = second = 0.0
        for low in self.blocks(self.z.dtype):
            mean = low.mean(0)
            gap = low - mean
            first, second = first + mean.double().sum().item(), second + gap.mul_(gap).mean(0).double().sum().item()
        n = len(self.z)
        return At(math.log(self.z.shape[1]), (first - self.right) / n, second / n)

    def _lowered(self, dtype: torch.dtype) -> Iterator[Tensor]:
        # Widened before the difference is taken, which float32 would round.
        for z, top in zip(torch.split(self.z, self.rows), torch.split(self.top, self.rows), strict=True):
            yield (z.to(dtype) - top.to(dtype)[:, None]).t().contiguous()
