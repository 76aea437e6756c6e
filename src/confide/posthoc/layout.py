"""From what users hold (tensors or arrays; binary, multi-class, multi-label, dense) to rows, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.core.rows import Rows, arrange
from confide.core.validate import check_values, on_simplex

if TYPE_CHECKING:
    from confide.posthoc.calibrator import Calibrator

SKIP = -1  # the label of a row that counts for nothing
ROOM = 1 << 21  # logits that are worked on at once
BINARY, MULTICLASS, MULTILABEL = "binary", "multiclass", "multilabel"


class View(NamedTuple):
    """Logits as rows, and the way back to the caller's layout, dtype, device and kind."""

    z: Tensor  # (K, C); (K,) in binary data; (K, L) in multi-label data; as given for spatial methods
    back: Callable[[Tensor], Any]


class Batch(NamedTuple):
    """What a calibrator learns from."""

    z: Tensor  # (K, C), float32 or float64; (K, 2) in binary data; (K, L) in multi-label data; spatial: (N, C, H, W)
    y: Tensor  # (K,), (K, L) or (N, H, W), int64; SKIP where nothing is known
    task: str


def to_tensor(x: Any, what: str) -> Tensor:
    """A tensor without history, of whatever holds numbers."""
    if isinstance(x, Tensor):
        return x.clone() if x.is_inference() else x.detach()
    array = np.asarray(x)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} must hold numbers, got {array.dtype} of shape {array.shape}")
    return torch.from_numpy(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")))


def read(logits: Any, target: Any, owner: Calibrator) -> Batch:
    """Checked rows whose label is known, in their task."""
    ignore_index, dim, from_probs = owner.ignore_index, owner.dim, owner.from_probs
    z, y = wide(to_tensor(logits, "logits"), from_probs, dim), to_tensor(target, "target").cpu()
    y = y.to(z.device)
    task = task_of(z, y, dim)
    if owner.card.spatial:
        return _dense(z, y, ignore_index, task)
    if task == MULTICLASS:
        z, y = _multiclass(z, y, ignore_index, dim, from_probs)
    else:
        y = _zero_one(y, ignore_index).reshape(-1) if task == BINARY else _zero_one(y, ignore_index)
        z, y = (z.reshape(-1), y) if task == BINARY else (_rows(arrange(z, y.to(z.dtype), dim))[0], _last(y, dim))
        _refuse_odd(z[y != SKIP])
    if task != MULTILABEL:
        known = y != SKIP
        z, y = (z, y) if bool(known.all()) else (z[known], y[known])
    return Batch(two(z) if task == BINARY else z, y, task)


def view(logits: Any, owner: Calibrator) -> View:
    """Logits alone; the way back keeps kind, dtype and layout."""
    given, dim = to_tensor(logits, "logits"), owner.dim
    z = wide(given, owner.from_probs, dim)
    back = _like(logits, given)
    if owner.task_ == BINARY:
        if z.dim() > 1 and z.shape[dim] != 1:
            raise InputError(f"fitted on one output a row, got logits of shape {tuple(z.shape)}")
        return View(z.reshape(-1), lambda x: back(x.reshape(given.shape)))
    axis = 0 if z.dim() == 1 else dim % max(z.dim(), 1)
    if z.dim() <= axis or z.shape[axis] != owner.classes_:
        raise InputError(f"fitted on {owner.classes_} classes, got logits of shape {tuple(z.shape)} with dim={dim}")
    if owner.card.spatial:
        return View(z, back)
    flat, restore = _rows(arrange(z, torch.zeros(z.shape[:axis] + z.shape[axis + 1 :], dtype=torch.int64), dim))
    return View(flat, lambda x: back(restore(x)))


def task_of(z: Tensor, y: Tensor, dim: int) -> str:
    """One output a row, as many labels as logits, or one label a row."""
    if z.dim() == 1 or (z.dim() > 1 and -z.dim() <= dim < z.dim() and z.shape[dim] == 1):
        if z.numel() != y.numel():
            raise InputError(
                f"target of shape {tuple(y.shape)} does not fit one output a row of shape {tuple(z.shape)}"
            )
        return BINARY
    return MULTILABEL if y.shape == z.shape else MULTICLASS


def two(s: Tensor) -> Tensor:
    """One sigmoid output as the two logits (0, s)."""
    return torch.stack((torch.zeros_like(s), s), 1)


def wide(z: Tensor, from_probs: bool, dim: int = 1) -> Tensor:
    """Float32 or float64, on a device that has the latter; probabilities become logits."""
    if not z.is_floating_point():
        raise InputError(f"logits must be floating point, got {z.dtype}; the arguments are (logits, target)")
    z = z.cpu() if z.device.type == "mps" else z
    z = z if z.dtype == torch.float64 else z.float()
    if not from_probs:
        return z
    if bool(((z < 0) | (z > 1)).any()):
        raise InputError("from_probs=True, but some numbers lie outside [0, 1]: leave it out if these are logits")
    p = z.double().clamp(torch.finfo(torch.float32).tiny, 1)
    single = z.dim() == 1 or z.shape[dim] == 1
    return p.log() - (-p.clamp(max=1 - 2.0**-53)).log1p() if single else p.log()


def pieces(z: Tensor) -> Iterator[Tensor]:
    """Rows in parts small enough to work on in float64."""
    return iter(torch.split(z, max(1, ROOM // max(1, z.shape[1]))))


def _multiclass(z: Tensor, y: Tensor, ignore_index: int, dim: int, from_probs: bool) -> tuple[Tensor, Tensor]:
    if y.is_floating_point():
        raise InputError(
            f"target must hold class indices, got {y.dtype}; class indices must be integers: target.long()"
        )
    rows = arrange(z, y, dim)
    flat = _rows(rows)[0]
    if not from_probs and bool(on_simplex(flat[:1000]).all()):
        raise InputError(
            "logits look like probabilities: every row lies in [0, 1] and sums to 1. Pass the values before the "
            "softmax, or say from_probs=True"
        )
    y = rows.y.long().reshape(-1)
    known = y != ignore_index
    if bool(((y < 0) | (y >= flat.shape[1]))[known].any()) or not bool(flat.sum().isfinite()):
        check_values(rows, ignore_index, masked=False)
    return flat, torch.where(known, y, SKIP)


def _dense(z: Tensor, y: Tensor, ignore_index: int, task: str) -> Batch:
    if task != MULTICLASS or z.dim() != 4:
        raise InputError(f"needs images: logits (N, C, H, W) and target (N, H, W), got logits {tuple(z.shape)}")
    check_values(arrange(z, y.long(), 1), ignore_index, masked=False)
    unknown = y.long() == ignore_index
    return Batch(torch.where(unknown[:, None], z.nan_to_num(), z), torch.where(unknown, SKIP, y.long()), task)


def _rows(rows: Rows) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """(K, C) with contiguous classes, and the way back."""
    z = rows.z
    if rows.last:
        return z, rows.restore
    outer, _, inner = z.shape
    flat = z.movedim(1, -1).reshape(-1, z.shape[1])
    return flat, lambda x: rows.restore(x.reshape(outer, inner, -1).movedim(-1, 1))


def _last(y: Tensor, dim: int) -> Tensor:
    return y.movedim(dim, -1).reshape(-1, y.shape[dim])


def _zero_one(y: Tensor, ignore_index: int) -> Tensor:
    """Labels of yes and no."""
    y = y if y.is_floating_point() else y.long()  # in uint8 an ignore_index of -1 would wrap to 255
    known = y != ignore_index
    if bool(((y != 0) & (y != 1) & known).any()):
        worst = y[(y != 0) & (y != 1) & known][0].item()
        raise InputError(f"one logit a label needs labels of 0 and 1 (or ignore_index={ignore_index}), got {worst}")
    if y.is_floating_point() and y.dim() > 1 and y.shape[1] > 2 and bool((y.sum(1) == 1).all()):
        raise InputError("target looks one-hot: for one class a row pass target.argmax(1), for labels target.long()")
    return torch.where(known, y.long(), SKIP)


def _refuse_odd(z: Tensor) -> None:
    if not bool(z.sum().isfinite()):
        raise InputError(f"{int((~z.isfinite()).sum()):,} of {z.numel():,} logits are NaN or infinite")


def _like(given: Any, tensor: Tensor) -> Callable[[Tensor], Any]:
    """Back to the kind, the device and (float32 at least) the dtype of the input."""
    dtype = tensor.dtype if tensor.dtype in (torch.float32, torch.float64) else torch.float32

    def back(x: Tensor) -> Any:
        x = x.to(dtype).to(tensor.device)
        return x if isinstance(given, Tensor) else x.numpy()

    return back
