"""What is refused, and the words for it. Found by counters in the hot path, explained only when they are not 0."""

from __future__ import annotations

from typing import NoReturn

import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.core.rows import Rows
from confide.core.stats import LIMIT
from confide.core.validate import bad_labels, bad_soft, label_message, soft_message
from confide.metrics.items import Items

SLACK = 1e-3  # how far rounding may carry a probability, or a row's sum, past where it belongs
COARSE = 1e-2  # in half precision


def slack_of(dtype: torch.dtype) -> float:
    """What is still a probability."""
    return COARSE if dtype.itemsize == 2 else SLACK


def wrong_probs(piece: Items, slack: float) -> Tensor:
    """Rows that are no distribution. Written so that NaN is wrong too."""
    x, axis = piece.x, piece.axis
    return ~((x.amin(axis) >= -slack) & ((x.sum(axis) - 1).abs() <= slack) & (piece.peak <= 1 + slack))


def check_sample_weight(weight: Tensor) -> None:
    """Refuse weights that cannot be meant."""
    if weight.is_complex() or weight.dtype == torch.bool:
        raise InputError(f"sample_weight must be numbers, got {weight.dtype}")
    if not bool(((weight >= 0) & (weight < LIMIT**0.5)).all()):
        raise InputError(f"sample_weight must be finite, at least 0 and below {LIMIT**0.5:.0f}; got {_span_of(weight)}")


def explain(rows: Rows, input: Tensor, keep: Tensor, probs: bool) -> NoReturn:
    """Look again at data known to be wrong and raise with count, place and remedy."""
    if rows.y.is_floating_point():
        if (stray := keep & bad_soft(rows.y)).any():
            raise InputError(soft_message(rows, stray))
    elif (stray := keep & bad_labels(rows)).any():
        raise InputError(label_message(rows, stray))
    keep = keep.reshape(rows.shape)
    if probs:
        _explain_probs(input, keep, rows.axis)
    bad = keep & ~input.movedim(rows.axis, -1).amax(-1).isfinite()
    raise InputError(
        f"input has {_number(bad, 'kept item')} whose logits are NaN, +inf or all -inf (first at {_first(bad)}); "
        "if they are to be ignored, mark them with ignore_index in target"
    )


def _explain_probs(input: Tensor, keep: Tensor, axis: int) -> NoReturn:
    p = input.movedim(axis, -1)
    slack, p = slack_of(p.dtype), p if p.dtype == torch.float64 else p.float()
    outside = ~((p >= -slack) & (p <= 1 + slack)) & keep[..., None]
    if outside.any():
        what = f"{_number(outside, 'value')} outside [0, 1] {_span(p[outside], outside.movedim(-1, axis))}"
    else:
        sums = p.sum(-1)
        bad = keep & ((sums - 1).abs() > slack)
        what = f"{_number(bad, 'kept item')} whose probabilities do not sum to 1 {_span(sums[bad], bad)}"
    raise InputError(
        f"inputs='probs', but input has {what}; "
        "pass logits with inputs='logits', or clamp the probabilities and divide them by their sum first"
    )


def _span(values: Tensor, bad: Tensor) -> str:
    """Where the values at fault lie; NaN is counted apart."""
    return f"({_span_of(values)}first at {_first(bad)})"


def _span_of(values: Tensor) -> str:
    numbers = values[~values.isnan()]
    nans = values.numel() - len(numbers)
    span = f"min {numbers.min():.6g}, max {numbers.max():.6g}, " if len(numbers) else ""
    return f"{span}{f'{nans:,} NaN, ' if nans else ''}"


def _number(bad: Tensor, noun: str) -> str:
    count = int(bad.sum())
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _first(bad: Tensor) -> list[int]:
    place: list[int] = bad.nonzero()[0].tolist()
    return place
