"""Parts of an image by its labels: foreground, a boundary of some width, one class."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import max_pool1d, max_pool2d, max_pool3d

from confide.core.errors import InputError, KnobError

POOL = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}
CHOICES = "'all', 'foreground', 'boundary:WIDTH' in pixels, or 'class:K'"


def region_mask(region: str, ignore_index: int | None) -> Callable[[Tensor], Tensor] | None:
    """From an index target to the rows of the region; None for all rows."""
    if region == "all":
        return None
    if region == "foreground":
        return foreground
    kind = re.fullmatch(r"(boundary|class):(\d+)", region)
    if kind is None or region == "boundary:0":
        raise KnobError(f"region={region!r} is unknown; it may be {CHOICES}")
    number = int(kind[2])
    return partial(of_class, k=number) if kind[1] == "class" else partial(boundary, width=number, ignore=ignore_index)


def foreground(target: Tensor) -> Tensor:
    """Rows whose label is not 0."""
    return target != 0


def of_class(target: Tensor, k: int) -> Tensor:
    """Rows with one label."""
    return target == k


def boundary(target: Tensor, width: int, ignore: int | None) -> Tensor:
    """Pixels with another label at most `width` pixels away along any axis or diagonal; ignored ones are no label.

    The target is (N, d1, ...), with up to three axes behind the first.
    """
    if target.dim() - 1 not in POOL:
        raise InputError(
            f"region='boundary:{width}' needs targets (N, d1, ...) with one to three axes, got {target.dim()}"
        )
    y = target.to(torch.int64)
    known = torch.ones_like(y, dtype=torch.bool) if ignore is None else y != ignore
    y = y.float()
    highest = _window(torch.where(known, y, float("-inf")), width)
    lowest = -_window(torch.where(known, -y, float("-inf")), width)
    return known & (highest != lowest)


def _window(x: Tensor, width: int) -> Tensor:
    """The largest value within a window; beyond the border there is nothing."""
    pool = POOL[x.dim() - 1]
    return pool(x.unsqueeze(1), 2 * width + 1, stride=1, padding=width).squeeze(1)
