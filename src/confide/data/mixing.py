"""Mixup and CutMix: every row becomes part of two, and so does its label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from confide.core.errors import InputError
from confide.data.split import Row


@dataclass(frozen=True)
class Mixup:
    """Blend each row with another: one share for the batch, from Beta(alpha, alpha) (Zhang et al., ICLR 2018)."""

    classes: int
    alpha: float = 0.4

    def __call__(self, inputs: Tensor, targets: Tensor, generator: torch.Generator) -> Row:
        share, partner = _share(self.alpha, generator), _partner(inputs, generator)
        soft = _soft(targets, self.classes, inputs)
        return _blend(inputs, inputs[partner], share), _blend(soft, soft[partner], share)


@dataclass(frozen=True)
class CutMix:
    """Paste a box of another image; labels are mixed by the area that was really pasted (Yun et al., ICCV 2019)."""

    classes: int
    alpha: float = 1.0
    probability: float = 0.5

    def __call__(self, inputs: Tensor, targets: Tensor, generator: torch.Generator) -> Row:
        soft = _soft(targets, self.classes, inputs)
        if _uniform(generator) >= self.probability:
            return inputs, soft
        share, partner = _share(self.alpha, generator), _partner(inputs, generator)
        top, bottom, left, right = _box(inputs.shape[-2], inputs.shape[-1], share, generator)
        mixed = inputs.clone()
        mixed[..., top:bottom, left:right] = inputs[partner, ..., top:bottom, left:right]
        pasted = (bottom - top) * (right - left) / (inputs.shape[-2] * inputs.shape[-1])
        return mixed, _blend(soft, soft[partner], 1 - pasted)


def _blend(one: Tensor, two: Tensor, share: float) -> Tensor:
    return share * one + (1 - share) * two


def _soft(targets: Tensor, classes: int, inputs: Tensor) -> Tensor:
    """Labels as probabilities; what is soft already may be mixed again."""
    if not inputs.is_floating_point():
        raise InputError("mixing needs images of floats: put Normalise before it")
    if targets.is_floating_point():
        return targets
    if targets.dim() != 1:
        raise InputError(f"mixing needs one label a row; these have the shape {tuple(targets.shape)}")
    return F.one_hot(targets.long(), classes).to(inputs.dtype)


def _partner(inputs: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randperm(len(inputs), generator=generator, device=inputs.device)


def _uniform(generator: torch.Generator) -> float:
    return torch.rand((), generator=generator, device=generator.device).item()


def _share(alpha: float, generator: torch.Generator) -> float:
    """From Beta(alpha, alpha), which torch cannot draw with a generator of its own."""
    seed = int(torch.randint(1 << 62, (), generator=generator, device=generator.device))
    return float(np.random.default_rng(seed).beta(alpha, alpha))


def _box(height: int, width: int, share: float, generator: torch.Generator) -> tuple[int, int, int, int]:
    """A box of 1 - share of the area around a random place, cut where it leaves the image."""
    side = (1 - share) ** 0.5
    edges = []
    for size in (height, width):
        centre, half = int(_uniform(generator) * size), int(size * side) // 2
        edges += [max(centre - half, 0), min(centre + half, size)]
    return edges[0], edges[1], edges[2], edges[3]
