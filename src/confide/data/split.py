"""What a data set looks like to the rest of confide: three parts, and what must be known to use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.core.errors import InputError

Index: TypeAlias = Sequence[int] | NDArray[np.int64] | Tensor
Row: TypeAlias = tuple[Tensor, Tensor]
Read: TypeAlias = Callable[[Any, np.random.Generator | None], Row]


@dataclass(frozen=True, eq=False)  # comparing tensors with == gives a tensor, so equality stays identity
class Part:
    """Rows in memory: inputs, their targets in the same order, and from whom each row comes.

    Images are (N, C, H, W), bytes or floats; texts are (N, L) word numbers. Targets are (N,), or (N, H, W) for masks.
    `units` names the patient, volume or document of every row; it is empty where every row stands for itself.
    """

    inputs: Tensor
    targets: Tensor
    units: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.targets):
            raise InputError(f"{len(self.inputs)} inputs but {len(self.targets)} targets")
        _check_units(self.units, len(self))

    def __len__(self) -> int:
        return len(self.targets)

    def load(self) -> Part:
        """Itself, which is in memory already."""
        return self

    def to(self, device: torch.device | str) -> Part:
        """All rows on a device: what fits there need not be sent batch by batch."""
        return Part(self.inputs.to(device), self.targets.to(device), self.units)

    def take(self, rows: Index) -> Part:
        """Some of the rows, in the order given."""
        index = torch.as_tensor(rows, dtype=torch.int64, device=self.inputs.device)
        units = tuple(self.units[i] for i in index.tolist()) if self.units else ()
        return Part(self.inputs.index_select(0, index), self.targets.index_select(0, index), units)


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows that are read when they are asked for, because all of them would not fit into memory.

    `read(item, generator)` gives one input and its target; it varies them by the generator, or not at all for None.
    It must be picklable, since worker processes call it. `labels` are the classes where they are known beforehand.
    """

    items: tuple[Any, ...]
    read: Read
    labels: Tensor | None = None
    units: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.labels is not None and len(self.labels) != len(self.items):
            raise InputError(f"{len(self.items)} items but {len(self.labels)} labels")
        _check_units(self.units, len(self))

    def __len__(self) -> int:
        return len(self.items)

    def load(self) -> Part:
        """All rows read into memory, without random changes."""
        first = self.read(self.items[0], None)
        inputs, targets = (values.new_empty(len(self), *values.shape) for values in first)
        for row, item in enumerate(self.items):
            x, y = self.read(item, None)
            if x.shape != inputs.shape[1:] or y.shape != targets.shape[1:]:
                raise InputError(
                    f"rows differ in shape: {item} has {tuple(x.shape)}, the first {tuple(inputs.shape[1:])}. Give the "
                    "reader a size, or memory=0 to read rows when they are needed"
                )
            inputs[row], targets[row] = x, y
        return Part(inputs, targets, self.units)

    def take(self, rows: Index) -> Stream:
        """Some of the rows, in the order given."""
        index = torch.as_tensor(rows, dtype=torch.int64)
        units = tuple(self.units[i] for i in index.tolist()) if self.units else ()
        labels = None if self.labels is None else self.labels[index]
        return Stream(tuple(self.items[i] for i in index.tolist()), self.read, labels, units)


Rows: TypeAlias = Part | Stream


@dataclass(frozen=True, eq=False)
class Split:
    """A data set: fit on `train`, choose on `val`, report on `test`. No unit is in two of them.

    Where a paper chooses on its test set, `val` and `test` are one object, and `how` says so.
    """

    train: Rows
    val: Rows
    test: Rows
    classes: tuple[str, ...]
    how: str = ""
    ignore_index: int = -100
    vocabulary: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parts = {"train": self.train, "val": self.val, "test": self.test}
        for (one, a), (two, b) in combinations(parts.items(), 2):
            _check_apart(one, a, two, b)
        for name, part in parts.items():
            _check_labels(name, part, len(self.classes), self.ignore_index)


def _check_units(units: tuple[str, ...], rows: int) -> None:
    if units and len(units) != rows:
        raise InputError(f"{rows} rows but {len(units)} units")


def _check_apart(one: str, a: Rows, two: str, b: Rows) -> None:
    shared = sorted(set(a.units) & set(b.units))
    if shared and (a is not b or "train" in (one, two)):
        raise InputError(
            f"{shared[0]!r} is in both {one} and {two} ({len(shared)} such): whoever is trained on cannot be tested "
            "on. Split by unit, not by row"
        )


def _check_labels(name: str, part: Rows, classes: int, ignore_index: int) -> None:
    """Labels that no class has; soft targets, and masks not read yet, are left to the loss."""
    counts = label_counts(part)
    stray = {label: n for label, n in counts.items() if not 0 <= label < classes and label != ignore_index}
    if stray:
        raise InputError(
            f"{name} has {sum(stray.values()):,} labels outside [0, {classes}), such as {min(stray)}, for {classes} "
            f"classes; if these are to be left out, ignore_index is to name them (it is {ignore_index})"
        )


def label_counts(part: Rows) -> dict[int, int]:
    """How often each label occurs; nothing where targets are soft, or masks that were not read yet."""
    labels = part.targets if isinstance(part, Part) else part.labels
    if labels is None or labels.is_floating_point():
        return {}
    if labels.dtype == torch.uint8:  # without the copies and the sorting of unique
        counts = torch.bincount(labels.flatten(), minlength=256).tolist()
        return {label: n for label, n in enumerate(counts) if n}
    values, found = labels.unique(return_counts=True)
    return dict(zip(values.tolist(), found.tolist(), strict=True))
