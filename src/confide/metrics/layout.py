"""From canonical views to pieces of contiguous (K, C) rows, and labels with -1 where nothing counts."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

SKIP = -1  # the label of a row that counts for nothing
ROOM = {"cpu": 1 << 21}  # logits handled at once: what a processor cache holds
WIDE_ROOM = 1 << 26  # on an accelerator fewer, larger steps


def pieces(z: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Cut (N, C, M) or (N, C) logits into parts small enough to work on, each as (K, C) rows and (K,) labels.

    The class axis goes last, because only there is a row's softmax the same, to the bit, alone and in a batch.
    """
    z, y = (z, y) if z.ndim == 3 else (z[..., None], y[..., None])
    rows = max(1, ROOM.get(z.device.type, WIDE_ROOM) // max(16, z.shape[1]))
    items = max(1, rows // max(1, z.shape[2]))
    for zs, ys in zip(torch.split(z, items), torch.split(y, items), strict=True):
        for part, labels in zip(torch.split(zs, rows, 2), torch.split(ys, rows, 1), strict=True):
            yield part.transpose(1, 2).reshape(-1, z.shape[1]), labels.reshape(-1)


def widen(z: Tensor) -> Tensor:
    """Contiguous rows in float32 at least."""
    wide = z if z.dtype == torch.float64 else z.to(torch.float32)
    return wide.contiguous()


def log_of(p: Tensor) -> Tensor:
    """Probabilities as logits, in float64 where there is one: a value on a bin's edge must stay on it."""
    wide = p if p.device.type == "mps" else p.double()
    return widen(wide.clamp(0, 1).log())


def labels(y: Tensor, classes: int, ignore_index: int | None) -> tuple[Tensor, Tensor]:
    """Labels in int64 with SKIP where ignored or out of range, and a mask of the latter.

    int64 comes first: a uint8 label compared with -1 or -100 would wrap.
    """
    y = y.to(torch.int64)
    known = (y >= 0) & (y < classes)
    keep = known if ignore_index is None else known & (y != ignore_index)
    stray = ~known if ignore_index is None else ~known & (y != ignore_index)
    return torch.where(keep, y, SKIP), stray


def blank(z: Tensor, skip: Tensor) -> Tensor:
    """Zeros in skipped rows, whatever they held. On the CPU a look is cheap and mostly saves the copy."""
    if z.device.type == "cpu" and not bool(skip.any()):
        return z
    return z.masked_fill(skip[:, None], 0.0)
