"""Saved predictions, whatever they are stored in: what is what, and why; read a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.core.errors import InputError
from confide.data.files.array import Array
from confide.data.kind import Kind
from confide.data.layout import Layout

CHUNK = 1 << 25  # bytes of float32 scores in a chunk


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows: scores (n, C, ...) with classes on axis 1, labels (n, ...) or shaped like the scores if soft."""

    scores: Tensor
    labels: Tensor | None
    columns: Mapping[str, NDArray[Any]]  # n values each
    origin: tuple[int, ...]  # where its first item stands: the row, then the place in it


@dataclass(frozen=True, eq=False)
class Case:
    """One file of predictions, or one pair of files."""

    name: str
    layout: Layout
    columns: tuple[Array, ...]
    fixed: Mapping[str, str]  # values that hold for the whole case

    @property
    def rows(self) -> int:
        """A volume with its classes first is one row."""
        return 1 if self.layout.axis == 0 else self.layout.scores.shape[0]

    def chunks(self, size: int, whole: bool, first: int, inputs: str) -> Iterator[Chunk]:
        """Slabs along the first axis that holds no classes; `first` is the number of the first row."""
        shape, cut = self.layout.scores.shape, self.layout.cut
        step = shape[cut] if whole and cut else max(1, size // max(4 * prod(shape) // shape[cut], 1))
        for start in range(0, shape[cut], step):
            yield self._chunk((start, min(start + step, shape[cut])), first, inputs)

    def row(self, number: int, first: int, inputs: str) -> Chunk:
        """All of one row; `first` is the number of this case's first."""
        cut = self.layout.cut
        return self._chunk((0, self.layout.scores.shape[1]) if cut else (number, number + 1), first, inputs)

    def _chunk(self, span: tuple[int, int], first: int, inputs: str) -> Chunk:
        layout = self.layout
        scores = _scores(layout, layout.scores.read(*span, layout.cut), inputs)
        labels = None if layout.labels is None else _labels(layout, layout.labels, span)
        origin = (first, span[0]) if layout.cut else (first + span[0],)
        columns = {} if layout.cut else {array.name: array.read(*span) for array in self.columns}
        fixed = {name: np.full(len(scores), value) for name, value in self.fixed.items()}
        return Chunk(scores, labels, columns | fixed, origin)


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a path holds, what each array was taken for, and why. Nothing but a sample was read yet."""

    path: Path
    cases: tuple[Case, ...]
    kind: Kind
    ignored: Mapping[int, float]  # label values that look like "ignore", and their share
    class_names: tuple[str, ...]
    said: tuple[str, ...]  # sentences for people

    @property
    def inputs(self) -> str:
        """`logits` or `probs`."""
        return self.kind.inputs

    @property
    def classes(self) -> int:
        """How many."""
        return self.cases[0].layout.classes

    @property
    def rows(self) -> int:
        """How many rows, images or volumes."""
        return sum(case.rows for case in self.cases)

    @property
    def items(self) -> int:
        """How many predictions: rows, or pixels."""
        return sum(case.layout.items for case in self.cases)

    @property
    def dtype(self) -> str:
        """The type in which the scores are stored."""
        return self.cases[0].layout.scores.dtype

    @property
    def labelled(self) -> bool:
        """Whether there are labels."""
        return self.cases[0].layout.labels is not None

    @property
    def soft(self) -> bool:
        """Whether labels are probabilities of the classes."""
        return self.cases[0].layout.soft

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what has one value a row, or a case."""
        return (*(array.name for array in self.cases[0].columns), *self.cases[0].fixed)

    def chunks(self, size: int = CHUNK, whole: bool = False) -> Iterator[Chunk]:
        """All rows in order, about `size` bytes at a time. `whole` never cuts an image or a volume."""
        first = 0
        for case in self.cases:
            yield from case.chunks(size, whole, first, self.inputs)
            first += case.rows

    def row(self, number: int) -> Chunk:
        """One row, image or volume by its number."""
        first = 0
        for case in self.cases:
            if number < first + case.rows:
                return case.row(number - first, first, self.inputs)
            first += case.rows
        raise InputError(f"there is no row {number} of {self.rows}")


def _scores(layout: Layout, values: NDArray[Any], inputs: str) -> Tensor:
    """Classes on axis 1; of one score a label, the two classes that it stands for."""
    z = torch.from_numpy(values)
    if layout.axis is not None:
        return z.unsqueeze(0) if layout.axis == 0 else z.movedim(layout.axis, 1)
    z = z if z.dtype == torch.float64 else z.float()  # in half precision 1 - p would be 1 too soon
    return torch.stack((1 - z if inputs == "probs" else torch.zeros_like(z), z), 1)


def _labels(layout: Layout, labels: Array, span: tuple[int, int]) -> Tensor:
    axis = layout.label_cut
    values = labels.read(*span, axis)
    if layout.soft:
        soft = torch.from_numpy(values.astype(np.float64 if values.dtype == np.float64 else np.float32))
        return soft.unsqueeze(0) if layout.axis == 0 else soft.movedim(layout.axis or 0, 1)
    y = torch.from_numpy(whole(labels, values))
    return y.unsqueeze(0) if layout.axis == 0 else y


def whole(labels: Array, values: NDArray[Any]) -> NDArray[np.int64]:
    """Class numbers as int64, in whatever type they are stored."""
    fits = values.dtype.kind in "iub" or (values.dtype.kind == "f" and bool((values == np.floor(values)).all()))
    if not fits:
        raise InputError(
            f"{labels.name!r} in {str(labels.path)!r} is {labels.dtype} {labels.shape}: labels must be class numbers"
        )
    return values.astype(np.int64)
