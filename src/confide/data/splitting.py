"""The papers' rules for dividing rows. The same seed gives the same division everywhere, for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from confide.core.errors import InputError

Index = NDArray[np.int64]


def shuffled(size: int, seed: int) -> Index:
    """A random order; NumPy promises that RandomState's stream never changes, and the released codes use it."""
    return np.random.RandomState(seed).permutation(size).astype(np.int64)


def held_out(size: int, share: float, seed: int) -> tuple[Index, Index]:
    """The rows that stay and those held out: the first `share` of a shuffled order, as MbLS does it."""
    if not 0 < share < 1:
        raise InputError(f"the share to hold out must lie between 0 and 1; it is {share}")
    order, count = shuffled(size, seed), int(np.floor(share * size))
    if not 0 < count < size:
        raise InputError(f"{share:g} of {size} rows leaves {size - count} and holds out {count}; both must have some")
    return order[count:], order[:count]


def held_out_by_class(labels: Tensor, each: int, seed: int) -> tuple[Index, Index]:
    """The rows that stay and those held out: `each` of every class, drawn class by class, as MbLS does it."""
    random, stay, held = np.random.RandomState(seed), [], []
    values = labels.numpy()
    for label in np.unique(values):
        rows = np.flatnonzero(values == label)
        if len(rows) <= each:
            raise InputError(f"class {label} has {len(rows)} rows, of which {each} are to be held out")
        random.shuffle(rows)
        stay.append(rows[:-each])
        held.append(rows[-each:])
    return np.concatenate(stay), np.concatenate(held)


def by_unit(units: Sequence[str], counts: Sequence[int], seed: int) -> list[Index]:
    """Rows of groups of units, as many units in each as `counts` says; all rows of a unit stay together.

    For other numbers of units than `counts` adds up to, the groups keep their shares, and none is empty.
    """
    names = sorted(set(units))
    if len(names) < len(counts):
        raise InputError(f"there are too few subjects for {len(counts)} parts: {len(names)} ({', '.join(names)})")
    sizes = _shares(len(names), counts)
    order = [names[i] for i in shuffled(len(names), seed)]
    ends = np.cumsum(sizes)
    return [rows_of(units, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def rows_of(units: Sequence[str], chosen: Iterable[str]) -> Index:
    """The rows that belong to some units, in their old order."""
    wanted = set(chosen)
    return np.asarray([i for i, unit in enumerate(units) if unit in wanted], dtype=np.int64)


def _shares(total: int, counts: Sequence[int]) -> list[int]:
    if sum(counts) == total:
        return list(counts)
    rest = [max(1, round(total * count / sum(counts))) for count in counts[1:]]
    return [total - sum(rest), *rest]
