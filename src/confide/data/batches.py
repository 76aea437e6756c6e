"""Batches of a part: from memory by whole rows at a time, or from disk through worker processes.

Everything random follows from the seed, the epoch and the batch, so a run that was cut off goes on with the same bits,
and the number of workers changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from confide.core.errors import InputError
from confide.data.split import Part, Row, Rows, Stream

Step: TypeAlias = Callable[[Tensor, Tensor, torch.Generator], Row]
ORDER, AUGMENT, READ = range(3)  # what a stream of random numbers is for


class Batch(NamedTuple):
    """Inputs and targets on the device, and the number of each row in its part."""

    inputs: Tensor
    targets: Tensor
    rows: Tensor


def batches(
    part: Rows,
    size: int,
    *,
    seed: int | None = None,
    epoch: int = 0,
    start: int = 0,
    steps: Sequence[Step] = (),
    drop_last: bool = False,
    device: torch.device | str | None = None,
    workers: int = 0,
) -> Iterator[Batch]:
    """One pass over a part, shuffled by the seed, or in order without one.

    `steps` change a batch on the device, one after the other (`confide.data.augment`). `start` skips batches that were
    seen before a restart. Labels and masks come as int64. `workers` only matter for a Stream. Without a `device`, rows
    stay where they are.
    """
    if size < 1 or (drop_last and size > len(part)):
        raise InputError(f"a batch of {size} of {len(part)} rows" + (" leaves none with drop_last" if size > 0 else ""))
    order = torch.arange(len(part)) if seed is None else _order(len(part), seed, epoch)
    if drop_last:
        order = order[: len(order) // size * size]
    index = list(order.split(size))[start:]
    read = _read(part, index, seed, epoch, workers, device)
    generator = torch.Generator(device or (part.inputs.device if isinstance(part, Part) else "cpu"))
    for number, (rows, (inputs, targets)) in enumerate(zip(index, read, strict=True), start):
        inputs, targets = _moved(inputs, device), _moved(targets, device)
        if steps:
            generator.manual_seed(_mix(AUGMENT, seed or 0, epoch, number))
        for step in steps:
            inputs, targets = step(inputs, targets, generator)
        yield Batch(inputs, targets if targets.is_floating_point() else targets.long(), rows)


def count(part: Rows, size: int, drop_last: bool = False) -> int:
    """How many batches one pass has."""
    return len(part) // size if drop_last else -(-len(part) // size)


def _mix(*numbers: int) -> int:
    """One seed from several numbers; neighbours give unrelated ones."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _order(size: int, seed: int, epoch: int) -> Tensor:
    return torch.randperm(size, generator=torch.Generator().manual_seed(_mix(ORDER, seed, epoch)))


def _moved(values: Tensor, device: torch.device | str | None) -> Tensor:
    return values if device is None else values.to(device, non_blocking=True)


def _read(
    part: Rows, index: list[Tensor], seed: int | None, epoch: int, workers: int, device: torch.device | str | None
) -> Iterator[Row]:
    if isinstance(part, Part):
        # Not by indexing, which goes element by element: ten times as slow for bytes.
        home = part.inputs.device
        return (
            (part.inputs.index_select(0, rows), part.targets.index_select(0, rows))
            for rows in (rows.to(home) for rows in index)
        )
    loader = DataLoader(
        _Numbered(part, None if seed is None else (seed, epoch)),
        batch_sampler=[rows.tolist() for rows in index],
        num_workers=workers,
        collate_fn=_collate,
        pin_memory=device is not None and torch.device(device).type == "cuda",
        generator=torch.Generator(),  # without one it draws from the global state, on which dropout depends
    )
    return iter(loader)


class _Numbered(Dataset[Row]):
    """A stream as torch's workers want it: each row with random numbers of its own."""

    def __init__(self, stream: Stream, seeds: tuple[int, int] | None) -> None:
        self.stream, self.seeds = stream, seeds

    def __getitem__(self, i: int) -> Row:
        generator = None if self.seeds is None else np.random.default_rng((READ, *self.seeds, i))
        return self.stream.read(self.stream.items[i], generator)


def _collate(rows: list[Row]) -> Row:
    shapes = {tuple(inputs.shape) for inputs, _ in rows}
    if len(shapes) > 1:
        raise InputError(f"rows of one batch differ in shape, {sorted(shapes)[:3]}: give a size, or batches of one")
    inputs, targets = default_collate(rows)
    return inputs, targets
