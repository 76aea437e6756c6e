"""Residual networks for small images: the 3 x 3 stem of MbLS and ACLS, and the thin CIFAR nets of He et al."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

EXPANSION = 4


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 (which may stride), 1 x 1, each with batch norm; a projected shortcut where the shape changes."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = EXPANSION * width
        self.branch = nn.Sequential(
            *_conv(channels, width, 1, 1),
            nn.ReLU(inplace=True),
            *_conv(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_conv(width, out, 1, 1),
        )
        changes = stride > 1 or channels != out
        self.shortcut = nn.Sequential(*_conv(channels, out, 1, stride)) if changes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.branch(x) + self.shortcut(x))


class SmallImageResNet(nn.Module):
    """ResNet-50 or -101 without the stem's stride and pooling: stages of 64, 128, 256 and 512.

    `pool` is the side of the last average pooling's output: 1 for CIFAR, 2 for Tiny-ImageNet (8,192 features).
    """

    def __init__(self, blocks: Sequence[int] = (3, 4, 6, 3), classes: int = 10, pool: int = 1) -> None:
        super().__init__()
        layers: list[nn.Module] = [*_conv(3, 64, 3, 1), nn.ReLU(inplace=True)]
        channels = 64
        for stage, count in enumerate(blocks):
            width = 64 * 2**stage
            for block in range(count):
                layers.append(Bottleneck(channels, width, 2 if stage and not block else 1))
                channels = EXPANSION * width
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(pool)
        self.head = nn.Linear(channels * pool * pool, classes)
        _he(self)

    def forward(self, images: Tensor) -> Tensor:
        """Images of shape (N, 3, H, W) in, logits of shape (N, classes) out."""
        logits: Tensor = self.head(self.pool(self.features(images)).flatten(1))
        return logits


def resnet50_cifar(classes: int = 10) -> SmallImageResNet:
    """ResNet-50 as MbLS and ACLS train it on CIFAR."""
    return SmallImageResNet((3, 4, 6, 3), classes)


def resnet101_cifar(classes: int = 10) -> SmallImageResNet:
    """ResNet-101 as MbLS and ACLS train it on CIFAR."""
    return SmallImageResNet((3, 4, 23, 3), classes)


def resnet50_tiny(classes: int = 200) -> SmallImageResNet:
    """ResNet-50 as MbLS and ACLS train it on Tiny-ImageNet."""
    return SmallImageResNet((3, 4, 6, 3), classes, pool=2)


def resnet101_tiny(classes: int = 200) -> SmallImageResNet:
    """ResNet-101 as MbLS and ACLS train it on Tiny-ImageNet."""
    return SmallImageResNet((3, 4, 23, 3), classes, pool=2)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions; the shortcut is a subsampled identity with zeros for new channels (He et al.'s A)."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.stride, self.extra = stride, (width - channels) // 2

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.extra, self.extra)))


class ThinResNet(nn.Module):
    """The CIFAR nets of He et al., 6n + 2 layers deep, with 16, 32 and 64 channels: n = 3 is ResNet-20."""

    def __init__(self, n: int = 3, classes: int = 10, channels: int = 3) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(16, 16, n)
        self.layer2 = _stage(16, 32, n)
        self.layer3 = _stage(32, 64, n)
        self.linear = nn.Linear(64, classes)
        _he(self)

    def forward(self, images: Tensor) -> Tensor:
        """Images of shape (N, channels, H, W) in, logits of shape (N, classes) out."""
        x = F.relu(self.bn1(self.conv1(images)))
        x = self.layer3(self.layer2(self.layer1(x)))
        logits: Tensor = self.linear(x.mean((2, 3)))
        return logits


def resnet20_cifar(classes: int = 10) -> ThinResNet:
    """ResNet-20: a CIFAR net that a laptop can train."""
    return ThinResNet(3, classes)


def _stage(channels: int, width: int, n: int) -> nn.Sequential:
    first = BasicBlock(channels, width, 2 if width > channels else 1)
    return nn.Sequential(first, *(BasicBlock(width, width, 1) for _ in range(n - 1)))


def _conv(channels: int, width: int, size: int, stride: int) -> tuple[nn.Module, nn.Module]:
    conv = nn.Conv2d(channels, width, size, stride, size // 2, bias=False)
    return conv, nn.BatchNorm2d(width)


def _he(model: nn.Module) -> None:
    """He initialisation of the convolutions by their fan-out, as the released code has it."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
