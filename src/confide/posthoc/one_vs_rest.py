"""Each class against the rest: accurate log-probabilities on both sides, curves of one number, logistic regressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.core.errors import MissingExtra
from confide.core.simplex import one_hot
from confide.posthoc.newton import minimise

if TYPE_CHECKING:
    from confide.posthoc.calibrator import Values

Array = NDArray[np.float64]
Curve = tuple[Array, Array]  # positions, and values there


def sides(z: Tensor) -> tuple[Tensor, Tensor]:
    """log p and log(1 - p) of every class, both accurate however near to 0 or 1 p is."""
    log_p = z.log_softmax(1)
    top = z.argmax(1, keepdim=True)
    others = z.scatter(1, top, -torch.inf).logsumexp(1, keepdim=True) - z.logsumexp(1, keepdim=True)
    rest = torch.log(-torch.expm1(torch.clamp(log_p, max=-1e-300)))
    return log_p, rest.scatter(1, top, others)


def logistic(features: Tensor, target: Tensor, ridge: Tensor) -> tuple[Tensor, bool]:
    """One logistic regression a class: features (P, N, C), targets in [0, 1] (N, C), coefficients (C, P)."""
    n = target.shape[0]

    def scores(x: Tensor) -> Tensor:
        return torch.einsum("cp,pnc->nc", x, features)

    def value(x: Tensor) -> Tensor:
        f = scores(x)
        return (torch.nn.functional.softplus(f) - target * f).mean(0) + (ridge * x * x).sum(-1) / 2

    def slopes(x: Tensor) -> tuple[Tensor, Tensor]:
        p = scores(x).sigmoid()
        gradient = torch.einsum("nc,pnc->cp", p - target, features) / n + ridge * x
        hessian = torch.einsum("nc,pnc,qnc->cpq", p * (1 - p), features, features) / n
        return gradient, hessian + torch.diag_embed(ridge.expand_as(x))

    start = torch.zeros(target.shape[1], len(features), dtype=target.dtype, device=target.device)
    return minimise(value, slopes, start)


def labels(z: Tensor, y: Tensor) -> Tensor:
    """One-hot, in float64."""
    return one_hot(z.double(), y)


def pack(curves: list[Curve]) -> Values:
    """Curves of different lengths as flat tensors."""
    return {
        "x": torch.from_numpy(np.concatenate([x for x, _ in curves])),
        "value": torch.from_numpy(np.concatenate([v for _, v in curves])),
        "start": torch.tensor(np.cumsum([0, *(len(x) for x, _ in curves)])),
    }


def follow(p: Tensor, values: Values, steps: bool = False) -> Tensor:
    """Each column by its curve: linear between the positions, or a step at each; constant beyond the ends."""
    start = values["start"].tolist()
    columns = []
    for k, column in enumerate(p.unbind(1)):
        x, v = (values[name][start[k] : start[k + 1]].to(p.dtype) for name in ("x", "value"))
        columns.append(v[torch.searchsorted(x[1:], column.contiguous())] if steps else interpolate(column, x, v))
    return torch.stack(columns, 1)


def interpolate(p: Tensor, x: Tensor, v: Tensor) -> Tensor:
    """Linear between positions, constant beyond the ends."""
    if len(x) == 1:
        return v.expand_as(p)
    right = torch.searchsorted(x, p.contiguous()).clamp(1, len(x) - 1)
    low, high = x[right - 1], x[right]
    share = ((p - low) / (high - low).clamp(min=1e-300)).clamp(0, 1)
    return v[right - 1] + share * (v[right] - v[right - 1])


def isotonic(score: Array, hit: Array) -> Curve:
    """The isotonic fit of 0/1 hits: the ends of its blocks; none claims more than its number of rows can show."""
    order = np.argsort(score, kind="stable")
    score, hit = score[order], hit[order]
    first = np.flatnonzero(np.r_[True, np.diff(score) > 0])
    weight = np.diff(np.r_[first, len(score)]).astype(float)
    at = score[first]
    fit = _optimize().isotonic_regression(np.add.reduceat(hit, first) / weight, weights=weight)
    blocks = fit.blocks
    ends = np.c_[blocks[:-1], blocks[1:] - 1]
    value = modest(fit.x[blocks[:-1]], np.add.reduceat(weight, blocks[:-1]))
    keep = np.c_[np.ones(len(ends), bool), ends[:, 1] > ends[:, 0]]
    return at[ends][keep], np.repeat(value[:, None], 2, 1)[keep]


def modest(value: Array, count: Array) -> Array:
    """Increasing shares of hits in blocks, kept from 0 and 1: n rows cannot show less than 1 in n + 2."""
    value = value.copy()
    if value[0] == 0:
        value[0] = min(1 / (count[0] + 2), value[1] / 2 if len(value) > 1 else 1)
    if value[-1] == 1:
        value[-1] = max(1 - 1 / (count[-1] + 2), (1 + value[-2]) / 2 if len(value) > 1 else 0)
    return value


def missing(y: Tensor, classes: int) -> str:
    """A note on classes without a row."""
    absent = (torch.bincount(y.reshape(-1), minlength=classes) == 0).nonzero().flatten().tolist()
    named = ", ".join(map(str, absent[:8])) + (", ..." if len(absent) > 8 else "")
    return f"no row of class {named}: its probability is what so many other rows allow" if absent else ""


def _optimize() -> Any:
    try:
        from scipy import optimize
    except ImportError as error:
        raise MissingExtra("scipy", "posthoc") from error
    return optimize
