"""The ResNets of ImageNet, with the weight names that torchvision's and timm's files have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch.nn.functional as F
from torch import Tensor, nn

EXPANSION = 4


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 (which strides or is dilated), 1 x 1."""

    def __init__(self, channels: int, width: int, stride: int = 1, dilation: int = 1) -> None:
        super().__init__()
        out = EXPANSION * width
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, dilation, dilation, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample: nn.Module = nn.Identity()
        if stride > 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.downsample(x))


class Encoder(nn.Module):
    """A ResNet up to its last stage. `dilations` replace the stride of a stage, so that maps stay larger."""

    def __init__(self, blocks: Sequence[int], channels: int = 3, dilations: Sequence[int] = (1, 1, 1, 1)) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        stages, inputs = [], 64
        for number, (count, dilation) in enumerate(zip(blocks, dilations, strict=True)):
            width = 64 * 2**number
            stride = 2 if number and dilation == 1 else 1
            first = Bottleneck(inputs, width, stride, dilation)
            inputs = EXPANSION * width
            stages.append(nn.Sequential(first, *(Bottleneck(inputs, width, 1, dilation) for _ in range(count - 1))))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.out = inputs
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(images))), 3, 2, 1)
        features: Tensor = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return features

    def load_pretrained(self, weights: Mapping[str, Tensor]) -> None:
        """Take the weights of a whole ResNet, without its head; `torch.load(path, weights_only=True)` gives them."""
        self.load_state_dict({name: value for name, value in weights.items() if not name.startswith("fc.")})


class ImageNetResNet(nn.Module):
    """Encoder, mean over all places, and a linear head, after dropout where it is asked for."""

    def __init__(self, blocks: Sequence[int] = (3, 4, 6, 3), classes: int = 1000, dropout: float = 0.0) -> None:
        super().__init__()
        self.encoder = Encoder(blocks)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(self.encoder.out, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Images of shape (N, 3, H, W) in, logits of shape (N, classes) out."""
        logits: Tensor = self.head(self.dropout(self.encoder(images).mean((2, 3))))
        return logits


def resnet50_imagenet(classes: int = 1000, dropout: float = 0.0) -> ImageNetResNet:
    """ResNet-50."""
    return ImageNetResNet((3, 4, 6, 3), classes, dropout)


def resnet101_imagenet(classes: int = 1000, dropout: float = 0.0) -> ImageNetResNet:
    """ResNet-101."""
    return ImageNetResNet((3, 4, 23, 3), classes, dropout)
