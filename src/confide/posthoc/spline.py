"""Spline calibration: the confidence is corrected by the slope of a spline through the cumulative error."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values, setting
from confide.posthoc.one_vs_rest import interpolate


@dataclass(eq=False, kw_only=True)
class Spline(Calibrator):
    """Top confidence plus the derivative of a natural cubic spline; the other classes share the rest as before."""

    knots: int = setting(6, low=3, high=100, doc="of the spline")
    card = Card(
        title="Spline recalibration",
        cite="Gupta et al., ICLR 2021",
        formula="max p + s'(t), s a spline through cumulative(hit - max p)",
        when="only the confidence of the prediction matters, and its curve has no simple shape",
        differs=(
            "As in the release: least squares, natural, knots on percentiles, linear between the rows of the fit; not "
            "to the digit (up to 0.03 of confidence apart on our golden sets, and we do not know why). The paper "
            "calibrates the top class (or the r-th) only; here the others are scaled to the rest, so that rows sum to "
            "1. Confidences stay between 1 / (n + 2) and 1 minus that; the release clips at 0 and 1."
        ),
        onnx=False,
    )

    x_: Tensor = field(init=False, repr=False)
    value_: Tensor = field(init=False, repr=False)

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        p, guess = z.double().softmax(1).max(1)
        score, order = p.sort(stable=True)
        n = len(score)
        error = ((guess == y).double()[order] - score).cumsum(0) / n
        t = torch.linspace(0, 1, n, dtype=p.dtype, device=p.device)
        knots = torch.linspace(0, 1, self.knots, dtype=p.dtype, device=p.device)
        basis, slope = _natural(t, knots)
        weights = torch.linalg.lstsq(basis, error[:, None], driver="gelsd" if not p.is_cuda else None).solution
        value = (score + (slope @ weights)[:, 0]).clamp(1 / (n + 2), 1 - 1 / (n + 2))
        x, inverse = score.unique(return_inverse=True)
        ties = torch.zeros_like(x).scatter_add(0, inverse, value) / torch.bincount(inverse)
        return Learnt({"x": x, "value": ties})

    def map(self, z: Tensor, values: Values) -> Tensor:
        log_p = z.log_softmax(1)
        top, guess = log_p.max(1, keepdim=True)
        new = interpolate(top[:, 0].exp(), values["x"].to(z.dtype), values["value"].to(z.dtype))[:, None]
        rest = log_p.scatter(1, guess, -torch.inf).logsumexp(1, keepdim=True)
        return (log_p - rest + (-new).log1p()).scatter(1, guess, new.log())


def _natural(t: Tensor, knots: Tensor) -> tuple[Tensor, Tensor]:
    """A basis of natural cubic splines with these knots, and its derivative, at t."""

    def cube(k: int) -> tuple[Tensor, Tensor]:
        gap = knots[-1] - knots[k]
        a, b = (t - knots[k]).clamp(min=0), (t - knots[-1]).clamp(min=0)
        return (a**3 - b**3) / gap, 3 * (a**2 - b**2) / gap

    end = cube(len(knots) - 2)
    inner = [cube(k) for k in range(len(knots) - 2)]
    basis = [torch.ones_like(t), t, *(c[0] - end[0] for c in inner)]
    slope = [torch.zeros_like(t), torch.ones_like(t), *(c[1] - end[1] for c in inner)]
    return torch.stack(basis, 1), torch.stack(slope, 1)
