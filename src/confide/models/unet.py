"""The U-Net of MarginLoss: five levels, no batch norm, and a last pooling by four."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from confide.core.errors import InputError


class UNet(nn.Module):
    """Two 3 x 3 convolutions with ReLU a level; maxima on the way down, the nearest value on the way up."""

    def __init__(
        self, channels: int = 1, classes: int = 4, widths: Sequence[int] = (32, 64, 128, 256, 512), last: int = 4
    ) -> None:
        super().__init__()
        self.steps = (*(2,) * (len(widths) - 2), last)
        self.down = nn.ModuleList(_level(a, b) for a, b in zip((channels, *widths), widths, strict=False))
        self.up = nn.ModuleList(_level(a + b, a) for a, b in pairwise(widths))
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Images of shape (N, channels, H, W) in, logits of shape (N, classes, H, W) out."""
        factor = 2 ** (len(self.steps) - 1) * self.steps[-1]
        if any(side % factor for side in images.shape[-2:]):
            raise InputError(f"this U-Net needs sides that are multiples of {factor}, not {tuple(images.shape[-2:])}")
        x = images
        skips: list[Tensor] = []
        for step, level in zip((1, *self.steps), self.down, strict=True):
            x = level(F.max_pool2d(x, step) if step > 1 else x)
            skips.append(x)
        for step, level, skip in reversed(list(zip(self.steps, self.up, skips[:-1], strict=True))):
            x = level(torch.cat((F.interpolate(x, scale_factor=float(step)), skip), 1))
        logits: Tensor = self.head(x)
        return logits


def _level(channels: int, width: int) -> nn.Sequential:
    first = nn.Conv2d(channels, width, 3, padding=1)
    return nn.Sequential(first, nn.ReLU(inplace=True), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True))
