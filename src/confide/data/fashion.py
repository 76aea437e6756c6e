"""Load the Fashion-MNIST subset that ships with confide, without a download."""

from __future__ import annotations

from importlib import resources

import numpy as np
import torch
from numpy.typing import NDArray

from confide.data.split import Part, Split

CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def load() -> Split:
    """Return 6,000 train, 1,000 val and 3,500 test images with equally many of every class.

    Images are float32 in [0, 1] of shape (N, 1, 28, 28): the layout that convolutions expect, and
    that a fully connected model can flatten without loss. Labels are int64.
    """
    path = resources.files("confide.data").joinpath("fashion.npz")
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        train, val, test = (
            _part(archive[f"{name}_images"], archive[f"{name}_labels"]) for name in ("train", "val", "test")
        )
    return Split(train=train, val=val, test=test, classes=CLASSES)


def _part(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> Part:
    pixels = torch.from_numpy(images).unsqueeze(1).float() / 255.0
    return Part(inputs=pixels, targets=torch.from_numpy(labels).long())
