"""Windows over maps of pixels: sums of all that lies in them, axis by axis, and the weights of a Gaussian.

Planes are (N, C, d1, ..., dk), one a class, and padded: windows fit in fully, so that sums are smaller than what they
are taken of by the window's reach on every side.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def narrowest(largest: int) -> torch.dtype:
    """The smallest dtype for whole numbers up to `largest`."""
    dtypes = (torch.uint8, torch.int16, torch.int32)
    return next(dtype for dtype in dtypes if largest <= torch.iinfo(dtype).max)


def pad(x: Tensor, first: int, reach: int, outside: float | None) -> Tensor:
    """Continue the axes from `first` on at both ends: with the number `outside`, or with what lies at the end."""
    if outside is not None or not x.numel():
        return torch.nn.functional.pad(x, [reach, reach] * (x.dim() - first), value=outside or 0)
    for axis in range(first, x.dim()):
        low, high = x.narrow(axis, 0, 1), x.narrow(axis, x.shape[axis] - 1, 1)
        x = torch.cat([low] * reach + [x] + [high] * reach, axis)
    return x


def differs(x: Tensor, number: Tensor | int) -> Tensor:
    """1 where they differ and 0 where they are equal, in the dtype of `x`; nothing may be negative."""
    # Ten times as fast as a comparison with one number, for which torch has no vector code on the CPU.
    return (x ^ number).clamp_max_(1)


def slide(planes: Tensor, sides: Sequence[float]) -> Tensor:
    """Sums over windows whose weights are products: 1 in the middle, `sides` at the distances 1, 2, ... on an axis."""
    for axis in range(2, planes.dim()):
        planes = _with_sides(_middle(planes, axis, sides), planes, axis, sides)
    return planes


def others(planes: Tensor, sides: Sequence[float]) -> Tensor:
    """What `slide` gives without the pixel in the middle, scaled so that the weights add up to 1."""
    # Not by subtraction, which would cost digits where the middle outweighs all others.
    around, total = torch.zeros_like(planes), 0.0
    for axis in range(2, planes.dim()):
        around = _with_sides(_middle(around, axis, sides), planes + around, axis, sides)
        planes = _middle(planes, axis, sides)
        total += 2 * sum(sides) * (1 + total)
    return around.div_(total)


def _middle(x: Tensor, axis: int, sides: Sequence[float]) -> Tensor:
    return x.narrow(axis, len(sides), x.shape[axis] - 2 * len(sides))


def _with_sides(start: Tensor, x: Tensor, axis: int, sides: Sequence[float]) -> Tensor:
    total = start
    for distance, weight in enumerate(sides, 1):
        for first in (len(sides) - distance, len(sides) + distance):
            piece = x.narrow(axis, first, start.shape[axis])
            total = torch.add(total, piece, alpha=weight) if total is start else total.add_(piece, alpha=weight)
    return total


def cut(x: Tensor, first: int, size: int, offset: Sequence[int]) -> Tensor:
    """Of every window of a padded tensor, whose pixels lie on the axes from `first` on, the pixel at `offset`."""
    for axis, start in enumerate(offset, first):
        x = x.narrow(axis, start, x.shape[axis] - size + 1)
    return x


def gaussian(size: int, sigma: float) -> list[float]:
    """The weights at the distances 1, 2, ... from the middle of a window, which has 1."""
    return [math.exp(-0.5 * (distance / sigma) ** 2) for distance in range(1, size // 2 + 1)]


def shells(planes: Tensor) -> list[Tensor]:
    """In windows of 3 pixels an axis, the sums over those that lie next to the middle on 1, 2, ... of the axes."""
    found = [planes]
    for axis in range(2, planes.dim()):
        length = planes.shape[axis] - 2
        straight = [x.narrow(axis, 1, length) for x in found]
        aside = [x.narrow(axis, 0, length) + x.narrow(axis, 2, length) for x in found]
        both = [x.add_(more) for x, more in zip(aside, straight[1:], strict=False)]
        found = [straight[0], *both, aside[-1]]
    return found[1:]


def shell_weights(axes: int, sigma: float) -> list[float]:
    """For every shell what a pixel of it weighs in a Gaussian, so that all weights together are 1/2."""
    falling = [math.exp(-0.5 * more / sigma**2) for more in range(axes)]
    pixels = [math.comb(axes, moved) * 2**moved for moved in range(1, axes + 1)]
    total = sum(weight * number for weight, number in zip(falling, pixels, strict=True))
    return [0.5 * weight / total for weight in falling]
