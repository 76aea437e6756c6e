"""What a data set looks like to the rest of confide: three parts and the names of the classes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)  # comparing tensors with == gives a tensor, so equality stays identity
class Part:
    """Images and their labels, in the same order."""

    images: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if len(self.images) != len(self.labels):
            raise ValueError(f"{len(self.images)} images but {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Split:
    """A data set: fit on `train`, choose on `val`, report on `test`."""

    train: Part
    val: Part
    test: Part
    classes: tuple[str, ...]
