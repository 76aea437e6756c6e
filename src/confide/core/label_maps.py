"""Labels as maps (N, d1, ..., dk) or as planes (N, C, d1, ..., dk), one a class, continued beyond the border.

With each goes what is known: 1 for pixels that have a label, 0 for ignored ones and for nothing.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.core.rows import Rows
from confide.core.windows import differs, narrowest, pad


class LabelMap(NamedTuple):
    """The labels of a batch of images, volumes or lines, with `reach` more pixels at every end of every axis."""

    rows: Rows
    ignore_index: int
    reach: int
    padding: str  # what lies outside: nothing ("inside"), the nearest pixel ("replicate"), or "background", class 0

    @property
    def soft(self) -> bool:
        """Whether a pixel may belong to several classes."""
        return self.rows.y.is_floating_point()

    @property
    def wide(self) -> torch.dtype:
        """In which to compute with floating point numbers."""
        return torch.promote_types(self.rows.z.dtype, torch.float32)

    def numbers(self) -> tuple[Tensor, int]:
        """The map of class numbers, in few bytes, and the number that stands where nothing is known."""
        classes, y = self.rows.z.shape[1], self.rows.y.argmax(1) if self.soft else self.rows.y
        labels, nothing = y.to(narrowest(classes)), self.ignore_index % 256
        if self.soft or labels.dtype != torch.uint8 or nothing < classes:
            labels, nothing = labels.masked_fill(~self._has_label().reshape(y.shape), classes), classes
        # Otherwise the narrowing itself has turned ignored labels into a number of their own, which is much quicker.
        return self._pad(labels.reshape(self.rows.shape), 1, nothing=nothing, background=0), nothing

    def indices(self) -> tuple[Tensor, Tensor]:
        """What is known, and class numbers to index with; both (N, 1, d1, ...)."""
        numbers, nothing = self.numbers()
        known = differs(numbers, nothing).to(self.wide).unsqueeze(1)
        return known, numbers.long().clamp_max_(self.rows.z.shape[1] - 1).unsqueeze(1)

    def hard_planes(self, dtype: torch.dtype, blocks: int) -> tuple[Tensor, Iterator[Tensor]]:
        """What is known, and block by block 1 in the plane of each pixel's class."""
        numbers, nothing = self.numbers()
        axis = numbers.dim() if self.rows.last else 1  # planes lie in memory as the logits do
        every = torch.arange(self.rows.z.shape[1], dtype=numbers.dtype, device=numbers.device)
        every = every.view(-1, *[1] * (numbers.dim() - axis))
        pixels = numbers.unsqueeze(axis)
        planes = (differs(pixels, some).bitwise_xor_(1).to(dtype).movedim(axis, 1) for some in every.chunk(blocks))
        return differs(numbers, nothing).to(dtype).unsqueeze(1), planes

    def soft_planes(self) -> tuple[Tensor, Tensor]:
        """What is known, and how much of each pixel belongs to each class."""
        y = self.rows.y.to(self.wide)
        mass = y.sum(1, keepdim=True)
        planes = self.upright(y / torch.where(mass > 0, mass, 1.0))
        first, rest = planes.split((1, planes.shape[1] - 1), 1)
        known = self._has_label().unsqueeze(1).to(self.wide)
        known, first = (self._pad(x, 2, nothing=0, background=1) for x in (known, first))
        return known, torch.cat((first, self._pad(rest, 2, nothing=0, background=0)), 1)

    def image(self, image: Tensor | None) -> Tensor:
        """The image (N, channels, d1, ..., dk) that belongs to the labels, black where none is known."""
        shape = self.rows.shape
        if image is None:
            raise InputError(
                "this prior compares pixels of the image: pass image=, of shape (N, channels, d1, ..., dk)"
            )
        if image.dim() != len(shape) + 1 or image.shape[:1] + image.shape[2:] != shape:
            raise InputError(
                f"image of shape {tuple(image.shape)} does not fit labels of shape {tuple(shape)}: it must be "
                f"({shape[0]}, channels, {', '.join(map(str, shape[1:]))}), with any number of channels on axis 1"
            )
        seen = torch.where(self._has_label().unsqueeze(1), image.to(self.wide), 0.0)
        return self._pad(seen, 2, nothing=0, background=0)

    def upright(self, x: Tensor) -> Tensor:
        """A tensor laid out as the logits are, as planes."""
        return self.rows.restore(x).movedim(self.rows.axis, 1)

    def _has_label(self) -> Tensor:
        y = self.rows.y
        return (y.sum(1) > 0 if self.soft else y.long() != self.ignore_index).reshape(self.rows.shape)

    def _pad(self, x: Tensor, first: int, *, nothing: int, background: int) -> Tensor:
        outside = {"inside": nothing, "background": background}.get(self.padding)
        return pad(x, first, self.reach, outside)


def with_pixels(rows: Rows) -> Rows:
    """Refuse a batch in which no label has a neighbour."""
    if len(rows.shape) < 2:
        raise InputError(
            f"this loss looks at the labels of neighbouring pixels, and labels of shape {tuple(rows.shape)} have no "
            "axis along which to look: the logits must be (N, C, d1, ..., dk), with a batch and at least one more axis"
        )
    if len(rows.shape) == 2 and rows.axis == 0:
        raise InputError(
            "logits with three axes and the class axis first look like one image without a batch, whose lines would "
            "be taken for a batch: pass input.unsqueeze(0) and target.unsqueeze(0) with dim=1"
        )
    return rows
