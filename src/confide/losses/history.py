"""How often each training sample was right so far: what the methods that rank samples remember from epoch to epoch.

criterion = CRL(len(dataset))
for epoch in range(epochs):
    for index, input, target in loader:  # index: the number of each sample in the training set
        criterion(model(input), target, index=index).backward()
    criterion.epoch_end()

What an epoch brought counts from its end on, so that the order of the batches does not matter and a batch may be seen
twice. Everything is in buffers: `criterion.state_dict()` belongs into the checkpoint.
"""

import math
from typing import Protocol

import torch
from torch import Tensor, nn

from confide.core.errors import InputError, KnobError
from confide.core.fused import Context
from confide.core.groups import Group, alone, largest
from confide.core.rows import Rows
from confide.core.simplex import predicted

ONE = 1 << 16  # a right answer; integers stay exact in `criterion.half()`, and soft targets give parts of it
NO_SIZE = "condition='ranking' compares how often samples were right so far: pass size=, the number of training samples"


PAIRED = {
    "accumulation_is_one_batch": "the last row of one part is not compared with the first of the next",
    "rows_can_be_reordered": "every row is compared with the one behind it",
}


class Ranking(Protocol):
    """A loss that ranks samples."""

    history: "History | None"
    training: bool

    @property
    def checking(self) -> bool:
        """Whether to look at the values of this batch."""

    def row_weight(self, rows: Rows) -> Tensor:
        """What each row counts for."""


class History(nn.Module):
    """Counts of right answers, one a sample."""

    right: Tensor
    fresh: Tensor
    epochs: Tensor
    least: Tensor
    span: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        if not size:
            raise KnobError(NO_SIZE)
        self.register_buffer("right", torch.zeros(size, dtype=torch.int32))  # up to the last whole epoch
        self.register_buffer("fresh", torch.zeros(size, dtype=torch.int32))  # in this epoch
        self.register_buffer("epochs", torch.zeros((), dtype=torch.int32))  # whole epochs
        self.register_buffer("least", torch.zeros((), dtype=torch.int32))  # the smallest of `right`
        self.register_buffer("span", torch.ones((), dtype=torch.int32))  # what `epochs` right answers exceed it by

    def extra_repr(self) -> str:
        """How many samples it knows."""
        return f"{len(self.right)} samples"

    @classmethod
    def example(cls) -> "History":
        """One that has something to tell, for tests."""
        history = cls(64)
        history.right += torch.arange(64, dtype=torch.int32) * 7 % 5 * ONE
        history.epochs += 3
        history.epoch_end()
        return history

    def share(self, index: Tensor, dtype: torch.dtype) -> Tensor:
        """How often each sample was right: 0 for the worst one of all, 1 for one that was right in every epoch."""
        return (self.right[index] - self.least).to(dtype) / self.span

    def record(self, rows: Rows, index: Tensor, keep: Tensor) -> None:
        """Note which of these samples are right, if they are to be kept."""
        y = rows.y
        # Not argmax, which on the CPU takes many times longer.
        winner = predicted(rows.z.to(torch.promote_types(rows.z.dtype, torch.float32)))
        if y.is_floating_point():
            units = (torch.where(winner, y, 0.0).sum(1).double() * ONE).round().to(torch.int32) * keep
        else:
            units = (winner.gather(1, torch.where(keep, y, 0).long().unsqueeze(1)).squeeze(1) & keep) * ONE
        self.fresh.scatter_reduce_(0, index.flatten(), units.flatten().to(torch.int32), "amax")

    def epoch_end(self, group: Group = None) -> None:
        """Count what this epoch brought; with a `group`, on any of its processes."""
        fresh = self.fresh if alone(group) else largest(self.fresh, group)
        self.right += fresh
        self.fresh.zero_()
        self.epochs += 1
        self.least.copy_(self.right.amin())
        self.span.copy_((self.epochs * ONE - self.least).clamp(min=1))  # 1 where all were right in every epoch


def example_index(shape: tuple[int, ...]) -> dict[str, Tensor]:
    """Sample numbers that go with `History.example`, for tests."""
    return {"index": torch.arange(math.prod(shape)).reshape(shape) % 64}


def history_of(loss: "Ranking") -> History:
    """Its history; an error that says what to do if it was built without one."""
    if loss.history is None:
        raise KnobError(NO_SIZE)
    return loss.history


def shares(loss: "Ranking", rows: Rows, index: Tensor | None) -> Context:
    """The context of a loss that ranks samples: the history of each row. In training mode this batch is noted."""
    history = history_of(loss)
    weight = loss.row_weight(rows)
    if index is None and not loss.training:
        return (torch.zeros_like(weight),)
    index = _positions(index, rows, weight > 0, len(history.right), loss.checking)
    # To torch.func a loss is a function without side effects.
    if loss.training and not torch._C._are_functorch_transforms_active():
        history.record(rows, index, weight > 0)
    return (history.share(index, weight.dtype),)


def _positions(index: Tensor | None, rows: Rows, keep: Tensor, size: int, check: bool) -> Tensor:
    """The caller's sample numbers, shaped like labels; 0 in rows that are not kept, whatever they hold."""
    if not isinstance(index, Tensor):
        raise InputError(
            "this loss ranks samples and needs index=, a tensor with the number of each in the training set: "
            "criterion(input, target, index=index). For data without a history call criterion.eval() first"
        )
    if index.is_floating_point() or index.dtype == torch.bool or index.shape != rows.shape:
        raise InputError(
            f"index must hold one whole number a target, in shape {tuple(rows.shape)}; got shape "
            f"{tuple(index.shape)} ({index.dtype})"
        )
    index = torch.where(keep, index.to(keep.device).reshape(keep.shape), 0).long()
    if check and bool(((index < 0) | (index >= size)).any()):
        raise InputError(
            f"index runs from {int(index.min())} to {int(index.max())}, but this loss was built for {size} samples, "
            "numbered from 0: size= must be that of the whole training set"
        )
    return index
