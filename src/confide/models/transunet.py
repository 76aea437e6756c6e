"""TransUNet (Chen et al., 2021) with R50-ViT-B_16: a ResNet, a transformer on its sixteenth, and a U-Net's way up."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from confide.core.errors import InputError

HIDDEN, HEADS, LAYERS, MLP = 768, 12, 12, 3072
GROUPS, WIDTH = 32, 64
DECODER, SKIPS = (256, 128, 64, 16), (512, 256, 64, 0)


class StandardisedConv(nn.Conv2d):
    """A convolution whose filters have mean 0 and variance 1 each."""

    def forward(self, input: Tensor) -> Tensor:
        variance, mean = torch.var_mean(self.weight, dim=(1, 2, 3), keepdim=True, correction=0)
        weight = (self.weight - mean) * torch.rsqrt(variance + 1e-5)
        return F.conv2d(input, weight, self.bias, self.stride, self.padding)


class Unit(nn.Module):
    """A bottleneck with group norm."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.branch = nn.Sequential(
            *_standardised(channels, width, 1),
            nn.ReLU(inplace=True),
            *_standardised(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_standardised(width, out, 1),
        )
        changes = stride > 1 or channels != out
        conv = StandardisedConv(channels, out, 1, stride, bias=False)
        self.shortcut = nn.Sequential(conv, nn.GroupNorm(out, out)) if changes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.branch(x) + self.shortcut(x))


class Encoder(nn.Module):
    """Three stages of a ResNet-50; also gives the maps at a half, a quarter and an eighth, the smallest first."""

    def __init__(self, channels: int, units: Sequence[int] = (3, 4, 9)) -> None:
        super().__init__()
        self.root = nn.Sequential(*_standardised(channels, WIDTH, 7, 2), nn.ReLU(inplace=True))
        stages, inputs = [], WIDTH
        for number, count in enumerate(units):
            width = WIDTH * 2**number
            first = Unit(inputs, width, 2 if number else 1)
            inputs = 4 * width
            stages.append(nn.Sequential(first, *(Unit(inputs, width, 1) for _ in range(count - 1))))
        self.stages = nn.ModuleList(stages)
        self.out = inputs

    def forward(self, images: Tensor) -> tuple[Tensor, list[Tensor]]:
        x = self.root(images)
        skips = [x]
        x = F.max_pool2d(x, 3, 2)  # without padding: one row and column short, which the maps handed on make up for
        for number, stage in enumerate(self.stages):
            x = stage(x)
            if number < 2:
                side = images.shape[-1] // 4 // 2**number
                skips.append(F.pad(x, (0, side - x.shape[-1]) * 2))
        return x, skips[::-1]


class Block(nn.Module):
    """Attention and two layers, each after a layer norm and added to its input."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(HIDDEN, eps=1e-6)
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)
        self.norm2 = nn.LayerNorm(HIDDEN, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(HIDDEN, MLP), nn.GELU(), nn.Dropout(dropout), nn.Linear(MLP, HIDDEN), nn.Dropout(dropout)
        )

    def forward(self, x: Tensor) -> Tensor:
        rows, places, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(rows, places, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(rows, places, HIDDEN)
        x = x + self.out(seen)
        y: Tensor = x + self.mlp(self.norm2(x))
        return y


class TransUNet(nn.Module):
    """For square images of one size, a multiple of 16, which its position embedding fixes.

    Grey images are repeated to three channels, as in the released code, so that its weights fit.
    """

    def __init__(self, channels: int = 1, classes: int = 4, size: int = 192, dropout: float = 0.1) -> None:
        super().__init__()
        if size % 16:
            raise InputError(f"TransUNet needs a size that is a multiple of 16, not {size}")
        self.size = size
        self.encoder = Encoder(3 if channels == 1 else channels)
        self.embedding = nn.Conv2d(self.encoder.out, HIDDEN, 1)
        self.position = nn.Parameter(torch.zeros(1, (size // 16) ** 2, HIDDEN))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(dropout) for _ in range(LAYERS)), nn.LayerNorm(HIDDEN, eps=1e-6))
        self.widen = _conv(HIDDEN, 512)
        inputs = (512, *DECODER)
        self.up = nn.ModuleList(
            nn.Sequential(_conv(inputs[i] + SKIPS[i], DECODER[i]), _conv(DECODER[i], DECODER[i])) for i in range(4)
        )
        self.head = nn.Conv2d(DECODER[-1], classes, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        """Images of shape (N, channels, size, size) in, logits of shape (N, classes, size, size) out."""
        if images.shape[-2:] != (self.size, self.size):
            raise InputError(f"this TransUNet was built for {self.size} x {self.size}, not {tuple(images.shape[-2:])}")
        images = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
        x, skips = self.encoder(images)
        places = self.embedding(x).flatten(2).transpose(1, 2) + self.position
        places = self.blocks(self.dropout(places))
        x = self.widen(places.transpose(1, 2).unflatten(2, (self.size // 16, -1)))
        for number, level in enumerate(self.up):
            x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True)
            x = level(torch.cat((x, skips[number]), 1) if number < len(skips) else x)
        logits: Tensor = self.head(x)
        return logits


def _standardised(channels: int, width: int, size: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    conv = StandardisedConv(channels, width, size, stride, size // 2, bias=False)
    return conv, nn.GroupNorm(GROUPS, width, eps=1e-6)


def _conv(channels: int, width: int) -> nn.Sequential:
    conv = nn.Conv2d(channels, width, 3, padding=1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(width), nn.ReLU(inplace=True))
