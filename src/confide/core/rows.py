"""Any layout becomes one view: logits `z` with the classes on axis 1, and one target `y` a row.

The only file that knows `dim`, `ignore_index`, class weights and up-casting.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from confide.core.errors import InputError


class Rows(NamedTuple):
    """A batch in canonical layout: `z` is (N, C) or (N, C, M), `y` is (N,) or (N, M), or shaped like `z` when soft."""

    z: Tensor
    y: Tensor
    shape: torch.Size  # of one number a row, in the caller's layout
    axis: int  # the class axis, in the caller's layout
    last: bool  # z is (rows, classes)

    def restore(self, x: Tensor) -> Tensor:
        """Bring a tensor shaped like `z` back to the layout of the caller's logits."""
        if self.last:
            return x.reshape(*self.shape, x.shape[1]).movedim(-1, self.axis)
        return x.reshape(*self.shape[: self.axis], x.shape[1], *self.shape[self.axis :])

    def follow(self, x: Tensor) -> Tensor:
        """Bring a tensor (N, C, d1, ..., dk) to the layout of `z`."""
        if self.last:
            return x.movedim(1, -1).reshape(-1, x.shape[1])
        return x.movedim(1, self.axis).reshape(self.z.shape[0], x.shape[1], *self.z.shape[2:])


class Kept(NamedTuple):
    """Rows that are safe to compute on: ignored ones hold zeros and weigh nothing."""

    z: Tensor  # float32 or wider
    y: Tensor  # int64 labels within range, or probabilities that sum to 1
    weight: Tensor  # what multiplies each row
    mass: Tensor  # what each row adds to the denominator of the mean


def arrange(input: Tensor, target: Tensor, dim: int = 1) -> Rows:
    """View the logits with the classes on axis 1, or last where memory has them last; refuse shapes that do not fit."""
    axis = _class_axis(input, dim)
    shape = input.shape[:axis] + input.shape[axis + 1 :]
    _check_shapes(input, target, axis, shape)
    if input.dim() == 2 and axis == 1:  # as it is: even a view that changes nothing costs autograd a node
        return Rows(input, target, shape, axis, last=True)
    soft = target.is_floating_point()
    if input.dim() == 1 or input.stride(axis) == 1:
        y = _rows_last(target, axis) if soft else target.reshape(math.prod(shape))
        return Rows(_rows_last(input, axis), y, shape, axis, last=True)
    outer, classes, inner = math.prod(input.shape[:axis]), input.shape[axis], math.prod(input.shape[axis + 1 :])
    y = target.reshape(outer, classes, inner) if soft else target.reshape(outer, inner)
    return Rows(input.reshape(outer, classes, inner), y, shape, axis, last=False)


def clean(z: Tensor, y: Tensor, ignore_index: int, weight: Tensor | None) -> Kept:
    """Ignored means removed: such rows get finite logits, a valid label and the weight 0, whatever they held."""
    z = z if z.dtype == torch.float64 else z.float()
    if y.is_floating_point():
        return _clean_soft(z, y.to(z.dtype), weight)
    y, keep, share = _labelled(y, ignore_index, weight, z.dtype)
    return Kept(torch.where(keep.unsqueeze(1), z, 0.0), y, share, share)


def _clean_soft(z: Tensor, q: Tensor, weight: Tensor | None) -> Kept:
    """A soft row of zeros carries no label and is ignored; class weights go into the row and tilt its label."""
    keep = q.sum(1) > 0
    if weight is not None:
        q = q * weight.to(z.dtype).view(-1, *[1] * (z.dim() - 2))
    share = q.sum(1)
    q = q / torch.where(share > 0, share, 1.0).unsqueeze(1)
    # torch divides the mean of soft targets by the number of rows, weighted or not.
    return Kept(torch.where(keep.unsqueeze(1), z, 0.0), q, share, keep.to(z.dtype))


def mass_of(y: Tensor, ignore_index: int, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The `mass` that `clean` would give, from the target alone."""
    return (y.sum(1) > 0).to(dtype) if y.is_floating_point() else _labelled(y, ignore_index, weight, dtype)[2]


def weight_of(y: Tensor, ignore_index: int, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The `weight` that `clean` would give, from the target alone."""
    if not y.is_floating_point():
        return _labelled(y, ignore_index, weight, dtype)[2]
    return y.to(dtype).sum(1) if weight is None else torch.tensordot(weight.to(dtype), y.to(dtype), dims=([0], [1]))


def _labelled(y: Tensor, ignore_index: int, weight: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Labels within range, which rows to keep, and the weight of each row."""
    y = y.long()  # before comparing: in uint8 an ignore_index of -1 would wrap to 255
    keep = y != ignore_index
    y = torch.where(keep, y, 0)
    share = keep.to(dtype)
    return y, keep, share if weight is None else share * weight.to(dtype)[y]


def _class_axis(input: Tensor, dim: int) -> int:
    if not isinstance(input, Tensor) or not input.is_floating_point():
        found = input.dtype if isinstance(input, Tensor) else type(input).__name__
        raise InputError(f"logits must be a floating point tensor, got {found}; the arguments are (input, target)")
    if input.dim() == 0:
        raise InputError("logits have no class axis; expected (C,), (N, C) or (N, C, d1, ..., dk)")
    if input.dim() == 1:
        return 0
    if not -input.dim() <= dim < input.dim():
        raise InputError(f"dim={dim} is not an axis of logits of shape {tuple(input.shape)}")
    return dim % input.dim()


def _rows_last(x: Tensor, axis: int) -> Tensor:
    return x.movedim(axis, -1).reshape(x.numel() // max(x.shape[axis], 1), x.shape[axis])


def _check_shapes(input: Tensor, target: Tensor, axis: int, shape: torch.Size) -> None:
    if input.shape[axis] < 2:
        raise InputError(
            f"logits of shape {tuple(input.shape)} have {input.shape[axis]} class on axis {axis}, and a softmax over "
            "it is constant. For one sigmoid output z pass the two logits (0, z): torch.stack((zeros_like(z), z), 1)"
        )
    if not isinstance(target, Tensor):
        raise InputError(f"target must be a tensor, got {type(target).__name__}")
    expected = input.shape if target.is_floating_point() else shape
    if target.shape != expected:
        kind = "class probabilities" if target.is_floating_point() else "class indices"
        raise InputError(
            f"target of shape {tuple(target.shape)} ({target.dtype}) does not fit logits of shape {tuple(input.shape)} "
            f"with classes on axis {axis}: {kind} must have shape {tuple(expected)}{_hint(input, target, axis, shape)}"
        )


def _hint(input: Tensor, target: Tensor, axis: int, shape: torch.Size) -> str:
    """Name the likely slip, where the shapes give it away."""
    if target.is_floating_point() and target.shape == shape:
        return "; class indices must be integers: target.long()"
    if input.dim() > 1 and target.shape == input.movedim(axis, -1).shape != input.shape:
        to_float = "" if target.is_floating_point() else ".float()"
        return f"; its class axis seems to be last: target.movedim(-1, {axis}){to_float}"
    if target.is_floating_point():
        alone = target.dim() == input.dim() and target.shape[axis] == 1
        return f"; class indices must be integers without a class axis: target.squeeze({axis}).long()" if alone else ""
    if target.shape == input.shape:
        return "; a one-hot target must be floating point: target.float()"
    if target.dim() == input.dim() and target.shape[axis] == 1:
        return f"; drop its class axis: target.squeeze({axis})"
    if input.dim() > 1 and target.shape == input.shape[:-1]:
        return "; the class axis seems to be last: pass dim=-1"
    if input.dim() > 1 and target.shape == input.shape[:1] + input.shape[2:]:
        return "; the class axis seems to be 1: pass dim=1"
    return ""
