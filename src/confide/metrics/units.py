"""Units of resampling: the images, patients or drives that rows belong to, and which of them were seen before."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from confide.core.errors import InputError

SLOTS = 128  # units are dealt to so many clusters, so that the sums of all clusters have a fixed size


@dataclass(frozen=True)
class Units:
    """Names, and for each row or sample the number of its name."""

    names: tuple[Any, ...]
    codes: Tensor

    @classmethod
    def of(cls, ids: Any) -> Units:
        """From whole numbers or strings: a tensor, an array or a list."""
        array = ids.detach().cpu().numpy() if isinstance(ids, Tensor) else np.asarray(ids)
        if array.dtype.kind not in "iuUS":
            raise InputError(f"ids must be whole numbers or strings, got {array.dtype}")
        names, codes = np.unique(array, return_inverse=True)
        return cls(tuple(names.tolist()), torch.from_numpy(codes.reshape(array.shape).astype(np.int64)))

    def crossed(self, other: Units) -> Units:
        """Tuples of names, each with one of `other` behind. Entries may be one a sample here and one a row there."""
        mine, theirs = self.codes, other.codes
        axes = max(mine.dim(), theirs.dim())
        mine, theirs = (x.reshape(*x.shape, *[1] * (axes - x.dim())) for x in (mine, theirs))
        pairs, codes = torch.unique(mine * len(other.names) + theirs, return_inverse=True)
        count = len(other.names)
        names = tuple((*self.names[i // count], other.names[i % count]) for i in pairs.tolist())
        return Units(names, codes)

    def slots(self) -> Tensor:
        """For each name its cluster, the same on every machine."""
        return torch.tensor([slot_of(name) for name in self.names], dtype=torch.int64)

    def fresh(self, seen: set[int | str]) -> Tensor:
        """For each entry whether its name occurs for the first time, here and in `seen`."""
        first = torch.zeros(self.codes.numel(), dtype=torch.bool)
        order = np.unique(self.codes.reshape(-1).numpy(), return_index=True)[1]
        first[torch.from_numpy(order)] = torch.tensor([name not in seen for name in self.names], dtype=torch.bool)
        return first.reshape(self.codes.shape)


def slot_of(name: int | str) -> int:
    """One of SLOTS, by checksum: the same name always, different names mostly apart."""
    return zlib.crc32(repr(name).encode()) % SLOTS


def ranges(codes: Tensor) -> Sequence[tuple[int, Tensor]]:
    """Each code that occurs, with the places where it does."""
    values, order = torch.sort(codes.cpu(), stable=True)
    found, counts = torch.unique_consecutive(values, return_counts=True)
    return list(zip(found.tolist(), order.split(counts.tolist()), strict=True))


def fresh_rows(valid: Tensor | None, ids: Units | None, seen: set[int | str]) -> Tensor | None:
    """Rows that are valid and whose sample occurs for the first time."""
    if ids is None:
        return valid
    fresh = ids.fresh(seen)
    if valid is None:
        return fresh
    return valid.cpu() & fresh.reshape(*fresh.shape, *[1] * (valid.dim() - fresh.dim()))
