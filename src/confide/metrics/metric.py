"""The contract of every metric: `observe` turns rows into sums, `value` turns sums into a number.

Layout, ignored rows, checks, streaming and merging are done here, once for all of them.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.core.rows import arrange
from confide.core.stats import Stats
from confide.metrics import checks, layout

if TYPE_CHECKING:
    from typing_extensions import Self

S = TypeVar("S", bound=Stats)


class Metric(ABC, Generic[S]):
    """A number that streams: `update` with batches, `merge` with other workers, `compute` at any time.

    Logits are `(C,)`, `(N, C)` or `(N, C, d1, ..., dk)`, or have their classes on axis `dim`; targets are class
    indices of any integer type. Rows whose target is `ignore_index` count for nothing, whatever their logits.
    Numbers are logits, also when they look like probabilities: `from_probs=True` is the only door for those.
    """

    definition: ClassVar[str]

    def __init__(self, *, ignore_index: int | None = -100, dim: int = 1, from_probs: bool = False) -> None:
        self.ignore_index = ignore_index
        self.dim = dim
        self.from_probs = from_probs
        self._stats: S | None = None

    def __init_subclass__(cls) -> None:
        if not getattr(cls, "definition", None):
            raise TypeError(f"{cls.__name__} needs a `definition`: one sentence and the formula")

    @abstractmethod
    def observe(self, z: Tensor, y: Tensor) -> S:
        """Sums over logits `z` (K, C), float32 or wider, and labels `y` (K,), int64.

        A label of -1 marks a row that must add nothing; its logits are zeros. Write into neither tensor: they may be
        the caller's own. Nothing here may wait for the device.
        """

    @abstractmethod
    def value(self, stats: S) -> float:
        """The number that these sums amount to; NaN when they are empty."""

    def settings(self) -> dict[str, Any]:
        """The constructor's keywords. Metrics merge only when these agree."""
        return {"ignore_index": self.ignore_index, "dim": self.dim, "from_probs": self.from_probs}

    @property
    def stats(self) -> S | None:
        """The sums so far, or None before the first update. They never change in place: safe to keep."""
        return self._stats

    def update(self, input: Tensor, target: Tensor) -> None:
        """Add a batch. If it is refused, nothing of it has been added."""
        stats = self._measure(input, target)
        self._stats = stats if self._stats is None else self._stats + stats

    def compute(self) -> float:
        return float("nan") if self._stats is None else self.value(self._stats)

    def reset(self) -> None:
        self._stats = None

    def __call__(self, input: Tensor, target: Tensor) -> float:
        """The metric of this one batch. What `update` has gathered is neither used nor touched."""
        return self.value(self._measure(input, target))

    def merge(self, other: Self) -> Self:
        """Take in what another worker has gathered, and return self."""
        self._check_kin(other)
        if other._stats is not None:
            self._stats = other._stats if self._stats is None else self._stats + other._stats
        return self

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Metric):
            return NotImplemented
        return copy.copy(self).merge(other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.settings().items())})"

    def _check_kin(self, other: object) -> None:
        if type(other) is not type(self):
            raise TypeError(f"cannot merge {type(self).__name__} with {type(other).__name__}")
        mine, theirs = self.settings(), other.settings()
        for name in mine:
            if mine[name] != theirs[name]:
                raise ValueError(f"cannot merge: {name} is {mine[name]!r} here and {theirs[name]!r} there")

    @torch.no_grad()
    def _measure(self, input: Tensor, target: Tensor) -> S:
        rows = arrange(input, target, self.dim)
        if target.is_floating_point():
            raise InputError(f"target must hold class indices, got {target.dtype}; soft targets are not supported")
        observed = (self._measure_piece(*piece) for piece in layout.pieces(rows.z, rows.y))
        stats, wrong = reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]), observed)
        if int(wrong):  # the only wait for the device
            checks.explain(rows, input, self.ignore_index, self.from_probs)
        return stats

    def _measure_piece(self, z: Tensor, y: Tensor) -> tuple[S, Tensor]:
        """The sums over one piece, and how many of its rows must be refused."""
        y, stray = layout.labels(y, z.shape[1], self.ignore_index)
        skip = y == layout.SKIP
        wrong = checks.wrong_probs(z) if self.from_probs else checks.wrong_logits(z)
        z = layout.log_of(z) if self.from_probs else layout.widen(z)
        return self.observe(layout.blank(z, skip), y), (stray | (wrong & ~skip)).sum()
