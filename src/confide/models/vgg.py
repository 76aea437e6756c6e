"""VGG16 with batch norm and dropout, as label relaxation trains it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from confide.models.keras import EPSILON, MOMENTUM, batch_norm, convolutions, decay_groups, start

L2 = 5e-4
# Width and dropout of every convolution of a stage; the last of a stage has none.
STAGES = (
    ((64, 0.3), (64, 0.0)),
    ((128, 0.4), (128, 0.0)),
    ((256, 0.4), (256, 0.4), (256, 0.0)),
    ((512, 0.4), (512, 0.4), (512, 0.0)),
    ((512, 0.4), (512, 0.4), (512, 0.0)),
)


class VGG16(nn.Module):
    """Convolution, ReLU, then batch norm; thirteen of them and a hidden layer of 512, for images of 32 x 32."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for stage in STAGES:
            for width, dropout in stage:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True), batch_norm(width)]
                layers += [nn.Dropout(dropout)] if dropout else []
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers, nn.Dropout(0.5), nn.Flatten())
        self.hidden = nn.Linear(512, 512)
        self.head = nn.Sequential(
            nn.ReLU(inplace=True), nn.BatchNorm1d(512, EPSILON, MOMENTUM), nn.Dropout(0.5), nn.Linear(512, classes)
        )
        start(self, nn.init.xavier_uniform_)

    def forward(self, images: Tensor) -> Tensor:
        """Images of shape (N, 3, 32, 32) in, logits of shape (N, classes) out."""
        logits: Tensor = self.head(self.hidden(self.features(images)))
        return logits

    def decay_groups(self) -> Iterator[dict[str, Any]]:
        """The paper's L2 of 5e-4 on convolutions and the hidden layer."""
        return decay_groups(self, dict.fromkeys([*convolutions(self), self.hidden], L2))
