"""Logits of a model on a loader: in eval mode, without a trace on the model, within a given memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from confide.core.errors import InputError
from confide.posthoc import layout
from confide.posthoc.layout import Batch

if TYPE_CHECKING:
    from confide.posthoc.calibrator import Calibrator

Forward = Callable[[nn.Module, Any], tuple[Tensor, Tensor]]


def gather(
    owner: Calibrator, model: nn.Module, loader: Iterable[Any], memory: int, seed: int, forward: Forward | None
) -> Batch:
    """All labelled rows, or a random sample of them where they would not fit."""
    kept = _Sample(memory, seed)
    with evaluating(model):
        for batch in loader:
            logits, target = (forward or _pair)(model, batch)
            kept.add(layout.read(logits, target, owner))
    return kept.batch()


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Eval mode inside; afterwards every module's flag and every buffer are what they were."""
    flags = [(module, module.training) for module in model.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    model.eval()
    try:
        yield
    finally:
        for module, flag in flags:
            module.training = flag
        for buffer, held in buffers:
            if not torch.equal(buffer, held):
                buffer.copy_(held)


class _Sample:
    """Each row stays with the same chance, which is halved whenever there are too many."""

    def __init__(self, memory: int, seed: int) -> None:
        self.memory, self.chance = memory, 1.0
        self.generator = torch.Generator().manual_seed(seed)
        self.parts: list[Batch] = []

    def add(self, batch: Batch) -> None:
        batch = Batch(batch.z.cpu(), batch.y.cpu(), batch.task)
        if self.parts and (batch.task, batch.z.shape[1]) != (self.parts[0].task, self.parts[0].z.shape[1]):
            raise InputError(f"batches differ: {self.parts[0].task} {self.parts[0].z.shape}, then {batch.z.shape}")
        self.parts.append(self._thin(batch, self.chance))
        while self._bytes() > self.memory and sum(len(part.y) for part in self.parts) > 2:
            self.chance /= 2
            self.parts = [self._thin(part, 0.5) for part in self.parts]

    def batch(self) -> Batch:
        if not self.parts:
            raise InputError("the loader gave no batch")
        zs, ys, tasks = zip(*self.parts, strict=True)
        return Batch(torch.cat(zs), torch.cat(ys), tasks[0])

    def _thin(self, batch: Batch, chance: float) -> Batch:
        if chance == 1:
            return batch
        stay = torch.rand(len(batch.y), generator=self.generator) < chance
        return Batch(batch.z[stay], batch.y[stay], batch.task)

    def _bytes(self) -> int:
        return sum(part.z.numel() * part.z.element_size() + part.y.numel() * 8 for part in self.parts)


def _pair(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
    if not (isinstance(batch, (list, tuple)) and len(batch) == 2):
        raise InputError(
            f"a batch is a {type(batch).__name__}, not a pair (input, target): say how to read it with "
            "forward=lambda model, batch: (logits, target)"
        )
    place = next(iter(model.parameters()), torch.empty(0)).device
    return model(batch[0].to(place)), batch[1]
