"""What surrounds each pixel: how much of every class lies in a window of the label map.

What goes to a loss is laid out as its logits are. Where they can, its numbers stay whole, as a rule in one byte: beside
the logits, writing and reading them costs little.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from confide.core.fused import Context
from confide.core.label_maps import LabelMap, with_pixels
from confide.core.rows import Rows
from confide.core.simplex import one_hot
from confide.core.windows import cut, gaussian, narrowest, others, shell_weights, shells, slide

BLOCKS = 8  # in which planes of floating point numbers are worked on, so that little memory is needed on the way


def proportions(z: Tensor, y: Tensor, *around: Tensor) -> Tensor:
    """The share of every class in the window, shaped like `z`, from what a method of `Neighbours` gave."""
    parts, total = _gathered(z, y, *around) if len(around) != 2 else (around[0].to(z.dtype), around[1].to(z.dtype))
    return parts * (1 / torch.where(total == 0, 1.0, total)).unsqueeze(1)


def _gathered(z: Tensor, y: Tensor, weights: Tensor, *counts: Tensor) -> tuple[Tensor, Tensor]:
    """Half of the label and what every shell of the window adds, by class and in all."""
    parts = 0.5 * one_hot(z, y)
    total = torch.full_like(parts[:, 0], 0.5)
    for weight, part, known in zip(weights.unbind(1), counts[::2], counts[1::2], strict=True):
        parts = parts + weight.unsqueeze(1) * part.to(z.dtype)
        total = total + weight * known.to(z.dtype)
    return parts, total


def _ranked(counts: Sequence[Tensor], total: Tensor, which: str) -> Tensor:
    """The class at a place in the order of all pixels of the window."""
    before = {"min": total * 0, "median": (total - 1) // 2, "max": total - 1}[which]
    passed, found = torch.zeros_like(total), torch.zeros_like(total, dtype=torch.int32)
    for count in counts:
        passed = passed + count
        found = found + (passed <= before)
    return found


def _commonest(counts: Sequence[Tensor]) -> Tensor:
    found, most = torch.zeros_like(counts[0], dtype=torch.int32), counts[0]
    for number, count in enumerate(counts):
        found = torch.where(count > most, number, found)
        most = torch.maximum(most, count)
    return found


class Neighbours(NamedTuple):
    """The labels in the window around every pixel. Ignored pixels leave it, and the rest shares out their weight."""

    labels: LabelMap
    size: int  # of the window on every axis, odd
    axes: int

    @classmethod
    def of(cls, rows: Rows, ignore_index: int, size: int, padding: str) -> "Neighbours":
        """What `padding` may be is said in `LabelMap`."""
        return cls(LabelMap(with_pixels(rows), ignore_index, size // 2, padding), size, len(rows.shape) - 1)

    def mean(self) -> Context:
        """Every pixel counts the same."""
        dtype = self.labels.wide if self.labels.soft else narrowest(self.size**self.axes)
        return self._laid_out(*self._sums(self._plain, dtype))

    def gaussian(self, sigma: float) -> Context:
        """The label of the pixel itself has half of the weight; the others share the rest as a Gaussian has it."""
        if self.size == 1:
            return (self._spread([]),)
        if self.labels.soft or self.size > 3:
            sides = gaussian(self.size, sigma)
            return self._spread([0.5]), *self._laid_out(*self._sums(partial(others, sides=sides), self.labels.wide))
        # Counted shell by shell, so that the numbers stay whole and their weights can wait.
        known, (planes,) = self.labels.hard_planes(torch.uint8, blocks=1)
        counts = [self._laid_out(*pair) for pair in zip(shells(planes), shells(known), strict=True)]
        return self._spread(shell_weights(self.axes, sigma)), *(x for pair in counts for x in pair)

    def ranked(self, which: str) -> Context:
        """The smallest, largest or commonest class number of each window ("min", "max", "mode"), or its lower "median".

        Of equally common classes the lowest. A soft label counts as its likeliest class.
        """
        counts, total = (x.unbind(1) for x in self._sums(self._plain, narrowest(self.size**self.axes)))
        return (self._like_y(_commonest(counts) if which == "mode" else _ranked(counts, total[0], which)),)

    def resembling(self, image: Tensor | None, weigh: Callable[[Tensor], Tensor], sides: Sequence[float]) -> Context:
        """Pixels weigh what `weigh` makes of their difference from the middle one, times `sides` on every axis."""
        labels, near = self.labels, [*reversed(sides), 1.0, *sides]
        seen = labels.image(image)
        known, held = labels.soft_planes() if labels.soft else labels.indices()
        middle = self._at(seen, [self.size // 2] * self.axes)
        parts = torch.zeros_like(labels.upright(labels.rows.z), dtype=labels.wide)
        total = torch.zeros_like(middle[:, :1])
        for offset in product(range(self.size), repeat=self.axes):
            weight = weigh(self._at(seen, offset) - middle) * math.prod([near[step] for step in offset])
            weight, part = weight * self._at(known, offset), self._at(held, offset)
            total = total + weight
            parts = parts.addcmul_(part, weight) if labels.soft else parts.scatter_add_(1, part, weight)
        return self._laid_out(parts, total)

    def _plain(self, planes: Tensor) -> Tensor:
        return slide(planes, [1] * (self.size // 2))

    def _at(self, x: Tensor, offset: Sequence[int]) -> Tensor:
        return cut(x, 2, self.size, offset)

    def _sums(self, reduce: Callable[[Tensor], Tensor], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Over the windows of the planes, and of all that is known. For whole numbers soft labels become hard."""
        if self.labels.soft and dtype.is_floating_point:
            known, planes = self.labels.soft_planes()
            blocks: Iterable[Tensor] = planes.chunk(BLOCKS, 1)
        else:
            known, blocks = self.labels.hard_planes(dtype, BLOCKS if dtype.is_floating_point else 1)
        total = reduce(known)
        first, *more = [reduce(block) for block in blocks]
        return torch.cat((first, *more), 1) if more else first, total

    def _spread(self, numbers: list[float]) -> Tensor:
        """The same numbers for every position, without memory of their own."""
        z = self.labels.rows.z
        found = torch.empty(len(numbers), dtype=self.labels.wide, device=z.device)
        for place, number in enumerate(numbers):  # copying them all to a GPU would wait for it
            found[place].fill_(number)
        return found.view(1, -1, *[1] * (z.dim() - 2)).expand(z.shape[0], -1, *z.shape[2:])

    def _like_y(self, x: Tensor) -> Tensor:
        z = self.labels.rows.z
        return x.reshape(z.shape[:1] + z.shape[2:])

    def _laid_out(self, parts: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        return self.labels.rows.follow(parts), self._like_y(total)
