"""What is refused, and the words for it. Found by two counters in the hot path, explained only when they are not 0."""

from __future__ import annotations

from typing import NoReturn

import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.metrics.layout import class_axis, widen

TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 1e-2}  # rounding alone moves sums of such probabilities
FINE_TOLERANCE = 1e-3


def check_form(input: Tensor, target: Tensor, dim: int) -> None:
    """Refuse types and shapes that have no reading. Looks at no value."""
    if not isinstance(input, Tensor) or not isinstance(target, Tensor):
        raise InputError(f"input and target must be tensors, got {type(input).__name__} and {type(target).__name__}")
    if not input.is_floating_point():
        raise InputError(f"input must be floating point logits, got {input.dtype}; arguments are (input, target)")
    if target.is_floating_point() or target.is_complex():
        raise InputError(f"target must hold class indices, got {target.dtype}; class probabilities are not supported")
    if input.ndim == 0:
        raise InputError("input has no class axis; expected (C,), (N, C) or (N, C, d1, ..., dk)")
    axis = class_axis(input, dim)
    if input.shape[axis] < 2:
        raise InputError(_one_class(input, axis))
    items = input.shape[:axis] + input.shape[axis + 1 :]
    if target.shape != items:
        raise InputError(_bad_shape(input, target, dim, items))


def tolerance(dtype: torch.dtype) -> float:
    """How far rounding may carry a probability, or a row's sum, past where it belongs."""
    return TOLERANCE.get(dtype, FINE_TOLERANCE)


def wrong_logits(z: Tensor) -> Tensor:
    """Rows without a softmax: NaN or +inf anywhere, or -inf everywhere."""
    return ~z.amax(-1).isfinite()


def wrong_probs(p: Tensor) -> Tensor:
    """Rows that are not a distribution. Written so that NaN is wrong too."""
    slack, p = tolerance(p.dtype), widen(p)
    return _outside(p, slack).any(-1) | ~((p.sum(-1) - 1).abs() <= slack)


def _outside(p: Tensor, slack: float) -> Tensor:
    return ~((p >= -slack) & (p <= 1 + slack))


def explain(input: Tensor, target: Tensor, dim: int, ignore_index: int | None, from_probs: bool) -> NoReturn:
    """Look again at data known to be wrong and raise with count, place and remedy."""
    axis = class_axis(input, dim)
    y = target.to(torch.int64)
    keep = torch.ones_like(y, dtype=torch.bool) if ignore_index is None else y != ignore_index
    _explain_labels(y, keep, input.shape[axis])
    if from_probs:
        _explain_probs(input, keep, axis)
    bad = keep & wrong_logits(input.movedim(axis, -1))
    raise InputError(
        f"input has {_number(bad, 'kept item')} whose logits are NaN, +inf or all -inf (first at {_first(bad)}); "
        "if they are to be ignored, mark them with ignore_index in target"
    )


def _explain_labels(y: Tensor, keep: Tensor, classes: int) -> None:
    bad = keep & ((y < 0) | (y >= classes))
    values = torch.unique(y[bad])
    if values.numel() == 0:
        return
    place = _first(bad)
    example = int(y[tuple(place)])
    hint = f"; did you mean ignore_index={example}?" if values.numel() == 1 else ""
    raise InputError(f"target has {_number(bad, 'value')} outside [0, {classes}) (e.g. {example} at {place}){hint}")


def _explain_probs(input: Tensor, keep: Tensor, axis: int) -> NoReturn:
    rows = input.movedim(axis, -1)
    p, bad = widen(rows), keep & wrong_probs(rows)
    outside = _outside(p, tolerance(rows.dtype)) & bad[..., None]
    if outside.any():
        what = f"{_number(outside, 'value')} outside [0, 1] {_span(p[outside], outside.movedim(-1, axis))}"
    else:
        sums = p.sum(-1)[bad]
        what = f"{_number(bad, 'kept item')} whose probabilities do not sum to 1 {_span(sums, bad)}"
    raise InputError(
        f"from_probs=True, but input has {what}; "
        "pass logits with from_probs=False, or clamp the probabilities and divide them by their sum first"
    )


def _span(values: Tensor, bad: Tensor) -> str:
    """Where the values at fault lie; NaN is counted apart."""
    numbers = values[~values.isnan()]
    nans = len(values) - len(numbers)
    span = f"min {numbers.min():.6g}, max {numbers.max():.6g}, " if len(numbers) else ""
    return f"({span}{f'{nans:,} NaN, ' if nans else ''}first at {_first(bad)})"


def _number(bad: Tensor, noun: str) -> str:
    count = int(bad.sum())
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _first(bad: Tensor) -> list[int]:
    place: list[int] = bad.nonzero()[0].tolist()
    return place


def _one_class(input: Tensor, axis: int) -> str:
    return (
        f"input of shape {tuple(input.shape)} has {input.shape[axis]} classes on axis {axis}; a metric needs two "
        "or more (for one sigmoid logit s, stack 0 and s into two)"
    )


def _bad_shape(input: Tensor, target: Tensor, dim: int, items: torch.Size) -> str:
    message = f"target of shape {tuple(target.shape)} does not fit input {tuple(input.shape)}: expected {tuple(items)}"
    if input.shape[:-1] == target.shape:
        return message + "; the class axis seems to be last, pass dim=-1"
    if target.ndim == input.ndim and target.shape[1:2] == (1,):
        return message + "; drop its channel axis with target.squeeze(1)"
    return message + f" with the classes on dim={dim}"
