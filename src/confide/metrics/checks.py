"""What is refused, and the words for it. Found by two counters in the hot path, explained only when they are not 0."""

from __future__ import annotations

from typing import NoReturn

import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.core.rows import Rows
from confide.core.validate import bad_labels, label_message
from confide.metrics.layout import widen

TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 1e-2}  # rounding alone moves sums of such probabilities
FINE_TOLERANCE = 1e-3


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


def explain(rows: Rows, input: Tensor, ignore_index: int | None, from_probs: bool) -> NoReturn:
    """Look again at data known to be wrong and raise with count, place and remedy."""
    y = rows.y.long()
    keep = torch.ones_like(y, dtype=torch.bool) if ignore_index is None else y != ignore_index
    if (stray := keep & bad_labels(rows)).any():
        raise InputError(label_message(rows, stray))
    keep = keep.reshape(rows.shape)
    if from_probs:
        _explain_probs(input, keep, rows.axis)
    bad = keep & wrong_logits(input.movedim(rows.axis, -1))
    raise InputError(
        f"input has {_number(bad, 'kept item')} whose logits are NaN, +inf or all -inf (first at {_first(bad)}); "
        "if they are to be ignored, mark them with ignore_index in target"
    )


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
