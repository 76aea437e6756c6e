"""DeepLabV3 with a ResNet-50 at an eighth of the size, as MbLS and ACLS train it on PASCAL VOC."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from confide.models.imagenet import Encoder

WIDTH, RATES = 256, (12, 24, 36)


class Pyramid(nn.Module):
    """The same features at several dilations, and their mean over the image, joined by a 1 x 1 convolution."""

    def __init__(self, channels: int, rates: Sequence[int] = RATES) -> None:
        super().__init__()
        self.branches = nn.ModuleList([_conv(channels, 1), *(_conv(channels, 3, rate) for rate in rates)])
        self.mean = nn.Sequential(nn.AdaptiveAvgPool2d(1), _conv(channels, 1))
        self.project = nn.Sequential(_conv(WIDTH * (len(rates) + 2), 1), nn.Dropout(0.5))

    def forward(self, x: Tensor) -> Tensor:
        mean = self.mean(x).expand(-1, -1, *x.shape[-2:])
        joined: Tensor = self.project(torch.cat((*(branch(x) for branch in self.branches), mean), 1))
        return joined


class DeepLabV3(nn.Module):
    """Batches of one cannot be trained on: the mean over an image has one value a channel for its batch norm."""

    def __init__(self, classes: int = 21, channels: int = 3, blocks: Sequence[int] = (3, 4, 6, 3)) -> None:
        super().__init__()
        self.encoder = Encoder(blocks, channels, dilations=(1, 1, 2, 4))
        self.decoder = nn.Sequential(Pyramid(self.encoder.out), _conv(WIDTH, 3))
        self.head = nn.Conv2d(WIDTH, classes, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Images of shape (N, channels, H, W) in, logits of shape (N, classes, H, W) out."""
        logits = self.head(self.decoder(self.encoder(images)))
        return F.interpolate(logits, images.shape[-2:], mode="bilinear", align_corners=True)


def _conv(channels: int, size: int, dilation: int = 1) -> nn.Sequential:
    padding = dilation * (size // 2)
    conv = nn.Conv2d(channels, WIDTH, size, padding=padding, dilation=dilation, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(WIDTH), nn.ReLU(inplace=True))
