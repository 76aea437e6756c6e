"""Changes of a whole batch at once, on its device: each row by its own random numbers, masks along with their images.

A step is called as `step(inputs, targets, generator)` and returns both; the generator lives on the device of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from confide.core.errors import InputError
from confide.data.split import Row

CIFAR10 = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))  # mean and deviation, as in the released code
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@dataclass(frozen=True, eq=False)
class Normalise:
    """Bytes to [0, 1], then minus the mean, over the deviation: a number a channel, or an image of its own."""

    mean: tuple[float, ...] | Tensor = (0.0,)
    std: tuple[float, ...] | Tensor = (1.0,)

    def __call__(self, inputs: Tensor, targets: Tensor, generator: torch.Generator) -> Row:
        values = inputs if inputs.is_floating_point() else inputs.float()
        mean, std = (_per_channel(value, values) for value in (self.mean, self.std))
        scale = 1 / (std if inputs.is_floating_point() else 255 * std)
        return torch.addcmul(-mean / std, values, scale), targets


@dataclass(frozen=True)
class Crop:
    """Pad all sides, then cut the old size out at random; a mask gets `fill` where its image was padded."""

    padding: int
    fill: int = 255

    def __call__(self, inputs: Tensor, targets: Tensor, generator: torch.Generator) -> Row:
        places = 2 * self.padding + 1
        at = torch.randint(places, (2, len(inputs)), generator=generator, device=inputs.device)
        inputs = _windows(inputs, self.padding, 0, at)
        return inputs, _windows(targets, self.padding, self.fill, at) if is_mask(targets) else targets


@dataclass(frozen=True)
class Flip:
    """Mirror left and right, half of the rows."""

    probability: float = 0.5

    def __call__(self, inputs: Tensor, targets: Tensor, generator: torch.Generator) -> Row:
        chosen = torch.rand(len(inputs), generator=generator, device=inputs.device) < self.probability
        return _flipped(inputs, chosen), _flipped(targets, chosen) if is_mask(targets) else targets


@dataclass(frozen=True)
class Shift:
    """Move by up to `share` of width and height, also by parts of a pixel; edges are continued, as Keras does it."""

    share: float = 0.1

    def __call__(self, inputs: Tensor, targets: Tensor, generator: torch.Generator) -> Row:
        if is_mask(targets):
            raise InputError("Shift moves by parts of a pixel, which a mask cannot follow; Crop can move both")
        values = inputs.float() / 255 if inputs.dtype == torch.uint8 else inputs
        by = torch.rand(len(values), 2, generator=generator, device=values.device) * 2 - 1
        return shifted(values, by * self.share), targets


def shifted(values: Tensor, by: Tensor) -> Tensor:
    """Every image moved by its own shares of width and height, with its edges continued."""
    place = torch.eye(2, 3, device=values.device, dtype=values.dtype).repeat(len(values), 1, 1)
    place[:, :, 2] = -2 * by  # a picture that moves right is read further left; its coordinates go from -1 to 1
    grid = F.affine_grid(place, list(values.shape), align_corners=False)
    return F.grid_sample(values, grid, padding_mode="border", align_corners=False)


def is_mask(targets: Tensor) -> bool:
    """Whether targets are a picture of classes for each row."""
    return targets.dim() == 3


def _per_channel(value: tuple[float, ...] | Tensor, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value.to(like)
    return torch.tensor(value, dtype=like.dtype, device=like.device).view(-1, 1, 1)


def _flipped(values: Tensor, chosen: Tensor) -> Tensor:
    return torch.where(chosen.view(-1, *(1,) * (values.dim() - 1)), values.flip(-1), values)


def _windows(values: Tensor, padding: int, fill: int, at: Tensor) -> Tensor:
    """Cut height x width windows at their own places, without a copy of all windows that there are."""
    height, width = values.shape[-2:]
    padded = F.pad(values, (padding,) * 4, value=fill)
    windows = padded.unfold(-2, height, 1).unfold(-2, width, 1)
    row = torch.arange(len(values), device=values.device)
    if values.dim() == 3:
        return windows[row, at[0], at[1]]
    return windows[row, :, at[0], at[1]]
