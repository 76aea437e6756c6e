"""What every check sees, and what it says: a batch of rows, and a finding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

HALF = ("bfloat16", "float16")  # the fewest digits first


@dataclass(frozen=True)
class Finding:
    """A trap that was found. `wrong` if numbers computed from the file would be."""

    code: str
    wrong: bool
    found: str  # what, and how many
    effect: str  # on the numbers
    fix: str
    count: int = 0
    first: tuple[int, ...] | None = None  # where it was seen first: row, then the place in it


class Check(Protocol):
    """Looks for one kind of trap."""

    @property
    def fine(self) -> str:
        """What was looked at, for when nothing is found."""

    def observe(self, batch: Batch) -> None:
        """Count."""

    def findings(self) -> Iterator[Finding]:
        """Say what the counts mean."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What the whole file has in common."""

    classes: int
    inputs: str  # "logits" or "probs"
    dtype: str = "float32"  # in which the scores are stored
    ignore_index: int | None = None

    @property
    def tolerance(self) -> float:
        """By how much rounding may move a probability or a sum."""
        return 1e-2 if self.dtype in HALF else 1e-3


class Batch:
    """Rows without the ignored ones: scores `z` (M, C), class numbers `y` (M,), and where each one stands."""

    def __init__(self, setting: Setting, scores: Tensor, labels: Tensor | None, origin: tuple[int, ...]) -> None:
        self.setting, self.origin = setting, origin
        self.shape = (scores.shape[0], *scores.shape[2:])
        flat = scores.movedim(1, -1).reshape(-1, scores.shape[1])
        z = flat if flat.dtype == torch.float64 else flat.float()
        if labels is not None and labels.is_floating_point():
            labels = labels.argmax(1)
        self.y = None if labels is None else labels.reshape(-1)
        self.index: Tensor | None = None
        self.z = z
        if self.y is not None and setting.ignore_index is not None:
            keep = self.y != setting.ignore_index
            if not bool(keep.all()):
                self.index = keep.nonzero().squeeze(1)
                self.z, self.y = z[self.index], self.y[self.index]

    def place(self, i: int) -> tuple[int, ...]:
        """Where row i of this batch stands in the file."""
        at = torch.unravel_index(torch.tensor(i if self.index is None else int(self.index[i])), self.shape)
        start = (*self.origin, *(0,) * (len(self.shape) - len(self.origin)))
        return tuple(int(a) + b for a, b in zip(at, start, strict=True))

    def first(self, mask: Tensor) -> tuple[int, ...]:
        """Where the first marked row stands."""
        return self.place(int(mask.nonzero()[0, 0]))

    @cached_property
    def finite(self) -> Tensor:
        """Rows of numbers only."""
        return self.z.isfinite().all(1)

    @cached_property
    def top(self) -> tuple[Tensor, Tensor]:
        """The two largest scores of every row, and their classes."""
        values, classes = self.z.nan_to_num(-torch.inf).topk(2, 1)
        return values, classes

    @cached_property
    def predicted(self) -> Tensor:
        """The class of the largest score, the lowest of several."""
        return self.z.nan_to_num(-torch.inf).argmax(1)

    @cached_property
    def confidence(self) -> Tensor:
        """The probability of the predicted class."""
        return self.top[0][:, 0] if self.setting.inputs == "probs" else self.z.softmax(1).amax(1)

    @cached_property
    def labelled(self) -> Tensor:
        """Rows whose label is a class."""
        if self.y is None:
            return torch.zeros(len(self.z), dtype=torch.bool)
        return (self.y >= 0) & (self.y < self.setting.classes)


class Tally:
    """How many rows show something, and where it was first."""

    def __init__(self) -> None:
        self.count = 0
        self.first: tuple[int, ...] = ()

    def add(self, mask: Tensor, batch: Batch) -> None:
        """Count the marked rows."""
        count = int(mask.sum())
        if count and not self.count:
            self.first = batch.first(mask)
        self.count += count


def where(first: tuple[int, ...]) -> str:
    """A place, for a sentence."""
    return f"row {first[0]:,}" if len(first) == 1 else f"{list(first)}"


def share(count: int, total: int) -> str:
    """A part of the rows, for a sentence; never 0 % of something that is there."""
    part = 100 * count / max(total, 1)
    return f"{count:,} of {total:,} ({'under 0.01' if part < 0.01 else f'{part:.3g}'} %)"
