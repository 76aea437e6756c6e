"""A small fully connected classifier."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


class MLP(nn.Module):
    """Linear layers with ReLU in between; the input is flattened and the output is raw logits."""

    def __init__(self, inputs: int = 784, hidden: Sequence[int] = (512, 512), classes: int = 10) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Flatten()]
        for width in hidden:
            layers += [nn.Linear(inputs, width), nn.ReLU()]
            inputs = width
        layers.append(nn.Linear(inputs, classes))
        self.layers = nn.Sequential(*layers)

    def forward(self, images: Tensor) -> Tensor:
        """Images of shape (N, ...) in, logits of shape (N, classes) out."""
        logits: Tensor = self.layers(images)
        return logits
