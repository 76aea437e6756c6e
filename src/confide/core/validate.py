"""Readable failure before a crash or a silent error: labels, soft targets and logits that cannot be meant."""

import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.core.rows import Rows

_HABITUAL_IGNORE = (255, -1, -100)


def check_values(rows: Rows, ignore_index: int) -> None:
    """Raise InputError unless every kept row has a valid target and logits that look like logits. One host sync."""
    z, y = rows.z.detach(), rows.y.detach()
    keep = y.sum(1) != 0 if y.is_floating_point() else y.long() != ignore_index
    bad_target = _bad_rows(y, 1e-2 if y.element_size() == 2 else 1e-3) if y.is_floating_point() else bad_labels(rows)
    bad_target, bad_logits = keep & bad_target, keep & z.isnan().any(1)
    simplex = keep.any() & (_on_simplex(z) | ~keep).all()
    flags = torch.stack((bad_target.any(), bad_logits.any(), simplex)).tolist()
    if flags[0]:
        raise InputError(_soft_message(rows, bad_target) if y.is_floating_point() else label_message(rows, bad_target))
    if flags[1]:
        first = _first(bad_logits, rows)
        raise InputError(
            f"logits have NaN in {_count(bad_logits)} rows that are not ignored, first at {first}: {_NAN_FIX}"
        )
    if flags[2]:
        raise InputError(_PROBABILITIES)


_NAN_FIX = "look for a diverged network, or a division or logarithm before the loss"
_PROBABILITIES = (
    "logits look like probabilities: every row lies in [0, 1] and sums to 1. Pass the values before the softmax, or "
    "the logarithm of the probabilities, which are valid logits; validate='off' if these really are logits"
)


def bad_labels(rows: Rows) -> Tensor:
    """Labels that are no class; ignored ones are among them."""
    y = rows.y.long()
    return (y < 0) | (y >= rows.z.shape[1])


def _bad_rows(q: Tensor, tolerance: float) -> Tensor:
    # Written so that NaN counts as bad.
    return ~((q.amin(1) >= -tolerance) & ((q.float().sum(1) - 1).abs() <= tolerance))


def _on_simplex(z: Tensor) -> Tensor:
    tolerance = 1e-2 if z.element_size() == 2 else 1e-3
    return (z.amin(1) >= 0) & (z.amax(1) <= 1) & ((z.float().sum(1) - 1).abs() <= tolerance)


def label_message(rows: Rows, bad: Tensor) -> str:
    """Count, range, first place and the likely remedy."""
    values = rows.y[bad].long()
    worst = int(values.mode().values)
    where = _first(bad & (rows.y.long() == worst), rows)
    found = f"target has {_count(bad)} values outside [0, {rows.z.shape[1]}) (e.g. {worst} at {where})"
    if worst in _HABITUAL_IGNORE or bool((values == worst).all()):
        return f"{found}; did you mean ignore_index={worst}?"
    return f"{found}; they range from {int(values.min())} to {int(values.max())}, labels must count from 0"


def _soft_message(rows: Rows, bad: Tensor) -> str:
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
