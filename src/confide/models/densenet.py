"""DenseNet-BC-100-12, as label relaxation trains it: its first convolution has no padding, so maps begin at 30 x 30."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from confide.models.keras import batch_norm, start


class Dense(nn.Module):
    """Batch norm, ReLU, 1 x 1 to four times the growth; the same with 3 x 3 to the growth; joined to the input."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            *_conv(channels, 4 * growth, 1),
            *_conv(4 * growth, growth, 3),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((x, self.branch(x)), 1)


class DenseNetBC(nn.Module):
    """Three blocks of `layers` bottlenecks; between them, half of the channels at half of the size."""

    def __init__(self, classes: int = 10, layers: int = 16, growth: int = 12) -> None:
        super().__init__()
        channels = 2 * growth
        parts: list[nn.Module] = [nn.Conv2d(3, channels, 3, bias=False)]
        for block in range(3):
            for _ in range(layers):
                parts.append(Dense(channels, growth))
                channels += growth
            if block < 2:
                parts += [*_conv(channels, channels // 2, 1), nn.AvgPool2d(2)]
                channels //= 2
        self.features = nn.Sequential(*parts, batch_norm(channels), nn.ReLU(inplace=True))
        self.head = nn.Linear(channels, classes)
        start(self, nn.init.xavier_uniform_)

    def forward(self, images: Tensor) -> Tensor:
        """Images of shape (N, 3, 32, 32) in, logits of shape (N, classes) out."""
        logits: Tensor = self.head(self.features(images).mean((2, 3)))
        return logits


def _conv(channels: int, width: int, size: int) -> tuple[nn.Module, nn.Module, nn.Module]:
    conv = nn.Conv2d(channels, width, size, padding=size // 2, bias=False)
    return batch_norm(channels), nn.ReLU(inplace=False), conv
