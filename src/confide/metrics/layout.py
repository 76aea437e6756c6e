"""From the caller's tensors to `Items`: layout, ignored rows, weights, and what must be refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.core.rows import Rows, arrange
from confide.core.validate import bad_labels, bad_soft
from confide.metrics import checks
from confide.metrics.items import FEW, SKIP, Items
from confide.metrics.units import Units

ROOM = {"cpu": 1 << 21}  # numbers handled at once: what a processor cache holds
WIDE_ROOM = 1 << 26  # on an accelerator fewer, larger steps


@dataclass(frozen=True)
class Door:
    """How a metric reads its input: what the numbers are, where the classes lie, and which rows count."""

    probs: bool = False
    ignore_index: int | None = -100
    dim: int = 1
    mask: Callable[[Tensor], Tensor] | None = None  # of an index target: the rows of a region


@dataclass(frozen=True)
class Side:
    """What the caller says about the rows beside their labels, each a number a row of the target, or one a sample."""

    sample_weight: Tensor | None = None
    valid: Tensor | None = None
    unit: Units | None = None


def items(input: Tensor, target: Tensor, door: Door, side: Side) -> Iterator[tuple[Items, Tensor | None]]:
    """The pieces of a batch, with the unit of each row. Behind the last one a batch that must be refused raises."""
    rows = arrange(input, target, door.dim)
    keep = _kept(rows, target, door, side)
    weight = None if side.sample_weight is None else _spread(side.sample_weight, rows, "sample_weight")
    unit = None if side.unit is None else _spread(side.unit.codes.to(input.device), rows, "unit")
    if weight is not None:
        checks.check_sample_weight(weight)
        keep = keep & (weight > 0)
    wrong = _wrong_targets(rows, keep).sum()
    slack = checks.slack_of(input.dtype)
    for piece, codes in _pieces(rows, keep, weight, unit, door.probs):
        bad = checks.wrong_probs(piece, slack) if door.probs else ~piece.peak.isfinite()
        wrong = wrong + (bad & piece.keep).sum()
        yield piece, codes
    if int(wrong):  # the only wait for the device
        checks.explain(rows, input, keep, door.probs)


def _kept(rows: Rows, target: Tensor, door: Door, side: Side) -> Tensor:
    """Rows that count, shaped like an index target in the layout of `rows`."""
    if rows.y.is_floating_point():
        keep = rows.y.sum(1) != 0  # a row of zeros carries no label
    elif door.ignore_index is None:
        keep = torch.ones_like(rows.y, dtype=torch.bool)
    else:
        keep = rows.y.to(torch.int64) != door.ignore_index  # first int64: in uint8 an ignored -1 would wrap to 255
    if side.valid is not None:
        if side.valid.dtype != torch.bool:
            raise InputError(f"valid must be a bool tensor, got {side.valid.dtype}")
        keep = keep & _spread(side.valid, rows, "valid")
    if door.mask is not None:
        if rows.y.is_floating_point():
            raise InputError("region= needs class indices as target; soft targets have no regions")
        keep = keep & door.mask(target).reshape(keep.shape)
    return keep


def _spread(x: Tensor, rows: Rows, name: str) -> Tensor:
    """One entry a row, from one a row or one a sample (the first axis of the target)."""
    shape = tuple(rows.shape)
    if tuple(x.shape) not in (shape, shape[:1]):
        raise InputError(
            f"{name} of shape {tuple(x.shape)} fits neither the rows {shape} nor the samples {shape[:1]} of the target"
        )
    flat = x if tuple(x.shape) == shape else x.reshape(-1, *[1] * (len(shape) - 1)).expand(shape)
    return flat.to(rows.z.device).reshape(rows.z.shape[:1] + rows.z.shape[2:])


def _wrong_targets(rows: Rows, keep: Tensor) -> Tensor:
    """Kept rows whose label is no class, or whose soft target is no distribution."""
    return keep & (bad_soft(rows.y) if rows.y.is_floating_point() else bad_labels(rows))


def _pieces(
    rows: Rows, keep: Tensor, weight: Tensor | None, unit: Tensor | None, probs: bool
) -> Iterator[tuple[Items, Tensor | None]]:
    """Cut into parts small enough to work on, few classes to axis 0, many to the last axis of contiguous rows.

    Only there the sum over classes has an order that does not depend on the size of the batch.
    """
    z, classes = _dense(rows.z), rows.z.shape[1]
    axis = 0 if classes <= FEW else 1
    soft = _dense(rows.y) if rows.y.is_floating_point() else None
    label = torch.zeros_like(keep, dtype=torch.int64) if soft is not None else rows.y.to(torch.int64)
    label = torch.where(keep & (label >= 0) & (label < classes), label, SKIP)
    for cut in _cuts(z):
        y = _flat(label, cut)
        skip = y == SKIP
        x = _blank(_arranged(z, cut), skip, axis)
        q = None if soft is None else _blank(_arranged(soft, cut), skip, axis)
        own, codes = (None if t is None else _flat(t, cut) for t in (weight, unit))
        yield Items(x, y, axis, q, own, probs=probs), codes


def _cuts(z: Tensor) -> Iterator[tuple[slice, slice]]:
    """Ranges of outer and inner positions of (N, C, M)."""
    outer, classes, inner = z.shape
    rows = max(1, ROOM.get(z.device.type, WIDE_ROOM) // max(2, classes))
    step, width = (max(1, rows // max(1, inner)), min(inner, rows)) if inner else (outer, 1)
    for i in range(0, max(outer, 1), max(step, 1)):
        for j in range(0, max(inner, 1), max(width, 1)):
            yield slice(i, i + step), slice(j, j + width)


def _dense(z: Tensor) -> Tensor:
    return z if z.dim() == 3 else z.unsqueeze(-1)


def _flat(x: Tensor, cut: tuple[slice, slice]) -> Tensor:
    return (x if x.dim() == 2 else x.unsqueeze(-1))[cut].reshape(-1)


def _arranged(z: Tensor, cut: tuple[slice, slice]) -> Tensor:
    """A cut of (N, C, M) as contiguous (C, rows) or (rows, C), in float32 or wider."""
    part = z[cut[0], :, cut[1]]
    wide = part if part.dtype == torch.float64 else part.to(torch.float32)
    few = z.shape[1] <= FEW
    flat = wide.movedim(1, 0).reshape(z.shape[1], -1) if few else wide.movedim(1, -1).reshape(-1, z.shape[1])
    return flat.contiguous()


def _blank(x: Tensor, skip: Tensor, axis: int) -> Tensor:
    """Zeros in skipped rows, whatever they held. On the CPU a look is cheap and mostly saves the copy."""
    if x.device.type == "cpu" and not bool(skip.any()):
        return x
    return x.masked_fill(skip.unsqueeze(axis), 0.0)
