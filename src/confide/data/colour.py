"""Random brightness, contrast and hue of RGB batches, for street and object scenes; masks stay as they are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.data.split import Row


@dataclass(frozen=True)
class BrightnessContrast:
    """Half of the rows: times 1 +- `limit`, plus 0 +- `limit` of the full range."""

    limit: float = 0.3
    probability: float = 0.5

    def __call__(self, inputs: Tensor, targets: Tensor, generator: torch.Generator) -> Row:
        by = _draw(inputs, 2, self.probability, generator) * self.limit
        return ((1 + by[0]) * _unit(inputs) + by[1]).clamp(0, 1), targets


@dataclass(frozen=True)
class HueSaturationValue:
    """Half of the rows: hue, saturation and value each moved by up to their share of the range."""

    hue: float = 20 / 180
    saturation: float = 30 / 255
    value: float = 20 / 255
    probability: float = 0.5

    def __call__(self, inputs: Tensor, targets: Tensor, generator: torch.Generator) -> Row:
        by = _draw(inputs, 3, self.probability, generator)
        hue, saturation, value = to_hsv(_unit(inputs)).unbind(1)
        hue = (hue + by[0, :, 0] * self.hue) % 1
        saturation = (saturation + by[1, :, 0] * self.saturation).clamp(0, 1)
        value = (value + by[2, :, 0] * self.value).clamp(0, 1)
        return to_rgb(torch.stack((hue, saturation, value), 1)), targets


def to_hsv(rgb: Tensor) -> Tensor:
    """Hue, saturation and value, all in [0, 1]; grey has hue 0."""
    high, place = rgb.max(1)
    spread = high - rgb.min(1).values
    red, green, blue = rgb.unbind(1)
    safe = torch.where(spread > 0, spread, 1)
    sixth = torch.stack(((green - blue) / safe % 6, (blue - red) / safe + 2, (red - green) / safe + 4), 1)
    hue = sixth.gather(1, place[:, None])[:, 0] / 6
    return torch.stack((torch.where(spread > 0, hue, 0), spread / torch.where(high > 0, high, 1), high), 1)


def to_rgb(hsv: Tensor) -> Tensor:
    """Back from hue, saturation and value."""
    hue, saturation, value = hsv.unbind(1)
    channels = []
    for offset in (5, 3, 1):
        k = (offset + hue * 6) % 6
        channels.append(value - value * saturation * torch.minimum(k, 4 - k).clamp(0, 1))
    return torch.stack(channels, 1)


def _unit(inputs: Tensor) -> Tensor:
    if inputs.shape[1] != 3:
        raise InputError(f"colours need three channels, red, green and blue; these images have {inputs.shape[1]}")
    return inputs.float() / 255 if inputs.dtype == torch.uint8 else inputs


def _draw(inputs: Tensor, count: int, probability: float, generator: torch.Generator) -> Tensor:
    """Numbers in [-1, 1] for each row, which are 0 where the row is left alone."""
    by = torch.rand(count + 1, len(inputs), generator=generator, device=inputs.device)
    chosen = by[count] < probability
    return ((2 * by[:count] - 1) * chosen)[..., None, None, None]
