"""ResNet56V2 of the Keras examples: pre-activated bottlenecks, as label relaxation trains it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from torch import Tensor, nn

from confide.models.keras import batch_norm, convolutions, decay_groups, start

L2, HEAD_L2 = 1e-4, 1e-2


class Preactivated(nn.Module):
    """1 x 1 (which may stride), 3 x 3, 1 x 1, each after batch norm and ReLU but for the first of all."""

    def __init__(self, channels: int, width: int, out: int, stride: int, first: bool, projects: bool) -> None:
        super().__init__()
        self.open = nn.Identity() if first else nn.Sequential(batch_norm(channels), nn.ReLU(inplace=False))
        self.reduce = nn.Conv2d(channels, width, 1, stride)
        self.middle = nn.Sequential(batch_norm(width), nn.ReLU(inplace=True), nn.Conv2d(width, width, 3, padding=1))
        self.expand = nn.Sequential(batch_norm(width), nn.ReLU(inplace=True), nn.Conv2d(width, out, 1))
        self.shortcut = nn.Conv2d(channels, out, 1, stride) if projects else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.expand(self.middle(self.reduce(self.open(x)))) + self.shortcut(x)
        return y


class ResNet56V2(nn.Module):
    """Three stages of six bottlenecks, with 64, 128 and 256 channels after them; convolutions have biases.

    The released code also penalises the softmax of the output: 0.01 times the sum of its squares, summed over the batch
    and divided by its size. That is a term of the loss, not of the network.
    """

    def __init__(self, classes: int = 10, n: int = 6) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), batch_norm(16), nn.ReLU(inplace=True))
        blocks, channels, width = [], 16, 16
        for stage, out in enumerate((64, 128, 256)):
            for block in range(n):
                stride = 2 if stage and not block else 1
                blocks.append(Preactivated(channels, width, out, stride, not (stage or block), not block))
                channels = out
            width = out
        self.blocks = nn.Sequential(*blocks)
        self.close = nn.Sequential(batch_norm(256), nn.ReLU(inplace=True), nn.AvgPool2d(8), nn.Flatten())
        self.head = nn.Linear(256, classes)
        start(self, partial(nn.init.kaiming_normal_, nonlinearity="relu"))

    def forward(self, images: Tensor) -> Tensor:
        """Images of shape (N, 3, 32, 32) in, logits of shape (N, classes) out."""
        logits: Tensor = self.head(self.close(self.blocks(self.stem(images))))
        return logits

    def decay_groups(self) -> Iterator[dict[str, Any]]:
        """The paper's L2 of 1e-4 on convolutions and 0.01 on the output layer."""
        return decay_groups(self, {**dict.fromkeys(convolutions(self), L2), self.head: HEAD_L2})
