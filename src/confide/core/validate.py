"""Readable failure before a crash or a silent error: labels, soft targets and logits that cannot be meant."""

import math

import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.core.rows import Rows

_HABITUAL_IGNORE = (255, -1, -100)


def check_values(rows: Rows, ignore_index: int, masked: bool = True) -> None:
    """Raise InputError unless every kept row has a valid target and logits that look like logits. One host sync.

    Logits of -inf are let through where classes may be `masked`.
    """
    z, y = rows.z.detach(), rows.y.detach()
    soft = y.is_floating_point()
    keep = (y != 0).any(1) if soft else y.long() != ignore_index
    bad_target = keep & (bad_soft(y) if soft else bad_labels(rows))
    bad_logits = keep & ~(_top_is_finite(z) if masked else z.isfinite().all(1))
    simplex = keep.any() & (on_simplex(z) | ~keep).all()
    flags = torch.stack((bad_target.any(), bad_logits.any(), simplex)).tolist()
    if flags[0]:
        raise InputError(soft_message(rows, bad_target) if soft else label_message(rows, bad_target))
    if flags[1]:
        raise InputError(_logit_message(rows, bad_logits))
    if flags[2]:
        raise InputError(_PROBABILITIES)


def check_weight(weight: Tensor | None) -> Tensor | None:
    """Return class weights as they are, unless they cannot be meant."""
    if isinstance(weight, Tensor) and weight.requires_grad:
        raise InputError("weight asks for a gradient, which class weights are not given: pass weight.detach()")
    if weight is None or (
        isinstance(weight, Tensor) and weight.dim() == 1 and bool(((weight >= 0) & weight.isfinite()).all())
    ):
        return weight
    raise InputError(f"weight must be a tensor with one finite, non-negative number a class, got {weight}")


def divisor_of(normalizer: float | Tensor, reduction: str, z: Tensor) -> Tensor:
    """The caller's denominator as a tensor beside the logits, in float32 or wider."""
    if reduction != "mean":
        raise InputError(f"normalizer replaces the mean's denominator, but reduction={reduction!r}")
    wide = torch.promote_types(z.dtype, torch.float32)
    if not isinstance(normalizer, Tensor):
        if not isinstance(normalizer, (int, float)) or not 0 <= normalizer < math.inf:
            raise InputError(f"normalizer must be a finite number, 0 or more, got {normalizer!r}")
        return torch.full((), normalizer, dtype=wide, device=z.device)
    if normalizer.numel() != 1:
        raise InputError(f"normalizer must be one number, got shape {tuple(normalizer.shape)}")
    return normalizer.detach().to(z.device, wide).reshape(())


_PROBABILITIES = (
    "logits look like probabilities: every row lies in [0, 1] and sums to 1. Pass the values before the softmax, or "
    "the logarithm of the probabilities, which are valid logits; validate='off' if these really are logits"
)


def bad_labels(rows: Rows) -> Tensor:
    """Labels that are no class; ignored ones are among them."""
    y = rows.y.long()
    return (y < 0) | (y >= rows.z.shape[1])


def _top_is_finite(z: Tensor) -> Tensor:
    """No NaN, no +inf, and some class left."""
    return z.amax(1).isfinite()


def bad_soft(q: Tensor) -> Tensor:
    """Rows that are no class probabilities; rows of zeros, which are ignored, are among them."""
    # Written so that NaN counts as bad.
    return ~((q.amin(1) >= -_tolerance(q)) & ((q.float().sum(1) - 1).abs() <= _tolerance(q)))


def _tolerance(p: Tensor) -> float:
    return 1e-2 if p.element_size() == 2 else 1e-3


def on_simplex(z: Tensor) -> Tensor:
    """Rows that are non-negative and sum to 1."""
    return (z.amin(1) >= 0) & (z.amax(1) <= 1) & ((z.float().sum(1) - 1).abs() <= _tolerance(z))


def label_message(rows: Rows, bad: Tensor) -> str:
    """Count, range, first place and the likely remedy."""
    values = rows.y[bad].long()
    worst = int(values.mode().values)
    where = _first(bad & (rows.y.long() == worst), rows)
    found = f"target has {_count(bad)} values outside [0, {rows.z.shape[1]}) (e.g. {worst} at {where})"
    if worst in _HABITUAL_IGNORE or bool((values == worst).all()):
        from_one = worst == rows.z.shape[1] and not bool((rows.y == 0).any())
        other = " No label is 0: if they count from 1, pass target - 1" if from_one else ""
        return f"{found}; did you mean ignore_index={worst}?{other}"
    return f"{found}; they range from {int(values.min())} to {int(values.max())}, labels must count from 0"


def _logit_message(rows: Rows, bad: Tensor) -> str:
    broken = bad & ~_top_is_finite(rows.z)
    if not broken.any():
        return (
            f"logits have -inf in {_count(bad)} rows that are not ignored, first at {_first(bad, rows)}: this loss "
            "measures distances between logits, and an infinite one has an infinite penalty. Leave masked classes out "
            "of the logits, or use a loss of probabilities alone, such as CrossEntropy or LabelRelaxation"
        )
    what = "NaN" if rows.z.isnan().any(1)[broken].any() else "inf"
    return (
        f"logits have {what} in {_count(broken)} rows that are not ignored, first at {_first(broken, rows)}: look for "
        "a diverged network, or a division or logarithm before the loss"
    )


def soft_message(rows: Rows, bad: Tensor) -> str:
    """Count, first place and contents."""
    first = _first(bad, rows)
    values = rows.y.movedim(1, -1)[bad][0].tolist()
    shown = ", ".join(f"{value:.4g}" for value in values[:6]) + (", ..." if len(values) > 6 else "")
    return (
        f"target has {_count(bad)} rows that are no class probabilities, first at {first}: ({shown}) sums to "
        f"{sum(values):.4g}. Rows must be non-negative and sum to 1; a row of zeros is ignored"
    )


def _count(mask: Tensor) -> str:
    return f"{int(mask.sum()):,}"


def _first(mask: Tensor, rows: Rows) -> list[int]:
    """Position of the first marked row in the caller's layout; empty for an unbatched input."""
    flat = mask.reshape(-1).nonzero()[0, 0]
    return [int(i) for i in torch.unravel_index(flat, rows.shape)] if rows.shape else []
