"""Two solvers for smooth convex problems: a bracketed Newton on the line, and a damped one with a dense Hessian."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Slope = Callable[[float], tuple[float, float]]  # at x: the first and the second derivative


def root(slope: Slope, start: float, low: float, high: float, tolerance: float) -> tuple[float, bool]:
    """Where an increasing slope is zero, between two positive ends, to a relative tolerance; and whether it got there.

    A Newton step that leaves the bracket, or comes late, is replaced by halving the bracket's logarithm.
    """
    x = min(max(start, low), high)
    for count in range(200):
        first, second = slope(x)
        low, high = (low, x) if first > 0 else (x, high)
        step = -first / second if second > 0 else math.inf
        late = count > 10 and count % 2
        new = x + step if low <= x + step <= high and not late else math.sqrt(low * high)
        if abs(new - x) <= tolerance * x or high - low <= tolerance * x:
            return new, True
        x = new
    return x, False


def minimise(
    value: Callable[[Tensor], Tensor],
    slopes: Callable[[Tensor], tuple[Tensor, Tensor]],
    start: Tensor,
    *,
    tolerance: float = 1e-10,
    steps: int = 100,
) -> tuple[Tensor, bool]:
    """Newton with a line search on many small problems at once: x (..., P), value (...), slopes (..., P), (..., P, P).

    The Hessians must be positive semi-definite. A problem is done when a step promises less than the tolerance.
    """
    x = start.clone()
    now = value(x)
    for _ in range(steps):
        gradient, hessian = slopes(x)
        direction = -solve(hessian, gradient)
        promise = -(gradient * direction).sum(-1)
        if bool((promise <= tolerance).all()):
            return x, True
        x, after = _search(value, x, now, direction, promise)
        if bool((now - after <= 1e-15 * now.abs()).all()):  # as far as rounding lets it go
            return x, bool((promise <= 1e4 * tolerance).all())
        now = after
    return x, False


def solve(hessian: Tensor, gradient: Tensor) -> Tensor:
    """The Newton step of a Hessian that may be singular: as much ridge as it needs, relative to its diagonal."""
    scale = hessian.diagonal(dim1=-2, dim2=-1).mean(-1, keepdim=True).clamp(min=1e-300)
    eye = torch.eye(hessian.shape[-1], dtype=hessian.dtype, device=hessian.device)
    for ridge in (1e-13, 1e-10, 1e-7, 1e-4, 1.0):
        factor, info = torch.linalg.cholesky_ex(hessian + ridge * scale[..., None] * eye)
        if not bool(info.any()):
            return torch.cholesky_solve(gradient[..., None], factor)[..., 0]
    return gradient / scale


def _search(
    value: Callable[[Tensor], Tensor], x: Tensor, now: Tensor, direction: Tensor, promise: Tensor
) -> tuple[Tensor, Tensor]:
    """Halve each problem's step until it keeps a part of its promise; a step that never does is not taken."""
    size = torch.ones_like(now)
    for _ in range(40):
        after = value(x + size[..., None] * direction)
        bad = ~(after <= now - 1e-4 * size * promise)
        if not bool(bad.any()):
            break
        size = torch.where(bad, size / 2, size)
    size = torch.where(bad, 0.0, size)
    x = x + size[..., None] * direction
    return x, torch.where(bad, now, after)


def descend(
    slope: Callable[[Tensor], tuple[Tensor, Tensor]], start: Tensor, *, tolerance: float = 3e-5, steps: int = 500
) -> tuple[Tensor, bool]:
    """L-BFGS with a strong Wolfe line search, where a Hessian would be too large: `slope` gives value and gradient."""
    x = start.clone()
    optimiser = torch.optim.LBFGS(
        [x],
        max_iter=steps,
        history_size=20,
        tolerance_grad=tolerance,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )
    best, lowest = x.clone(), math.inf

    def closure() -> float:
        nonlocal best, lowest
        value, x.grad = slope(x)
        number = float(value)
        if number < lowest:
            best, lowest = x.clone(), number
        return number

    with torch.no_grad():
        optimiser.step(closure)
    return best, optimiser.state[x]["n_iter"] < steps
