"""Multinomial logistic regression toward a prior: logits = base + D (x, 1), with a ridge on each entry of D."""

from __future__ import annotations

import torch
from torch import Tensor

from confide.core.simplex import one_hot
from confide.posthoc.layout import pieces
from confide.posthoc.newton import descend, minimise

DENSE = 600  # parameters up to which the Hessian is cheaper than many steps without it


def fit(x: Tensor, y: Tensor, base: Tensor, ridge: Tensor) -> tuple[Tensor, bool]:
    """D (C, F + 1) of the lowest mean NLL + sum(ridge * D**2) / 2, and whether the search ended by itself."""
    problem = _Problem(x, y, base, ridge)
    if ridge.numel() <= DENSE:
        flat, converged = minimise(
            lambda d: problem.slope(d.view_as(ridge))[0], problem.newton, torch.zeros_like(ridge).reshape(-1)
        )
        return flat.view_as(ridge), converged
    scale = problem.scale()

    def slope(u: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = problem.slope(u @ scale)
        return value, gradient @ scale

    found, converged = descend(slope, torch.zeros_like(ridge))
    return found @ scale, converged


class _Problem:
    """Sums over rows, part by part."""

    def __init__(self, x: Tensor, y: Tensor, base: Tensor, ridge: Tensor) -> None:
        self.n, self.ridge = len(x), ridge
        x = torch.cat((x, x.new_ones(self.n, 1)), 1)
        size = len(next(pieces(base)))
        self.parts = list(zip(*(torch.split(t, size) for t in (x, y, base)), strict=True))

    def slope(self, d: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient at D."""
        value = (self.ridge * d * d).sum() / 2
        gradient = self.ridge * d
        for x, y, base in self.parts:
            log_p = (base + x @ d.T).log_softmax(1)
            value = value - log_p.gather(1, y[:, None]).sum() / self.n
            gradient = gradient + (log_p.exp() - one_hot(log_p, y)).T @ x / self.n
        return value, gradient

    def newton(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Gradient and Hessian, with D as one vector."""
        d = flat.view_as(self.ridge)
        hessian = torch.diag(self.ridge.reshape(-1))
        for x, _, base in self.parts:
            p = (base + x @ d.T).softmax(1)
            mixed = (p[:, :, None] * x[:, None, :]).reshape(len(x), -1)
            blocks = torch.einsum("nc,ni,nj->cij", p, x, x)
            hessian = hessian + (torch.block_diag(*blocks) - mixed.T @ mixed) / self.n
        return self.slope(d)[1].reshape(-1), hessian

    def scale(self) -> Tensor:
        """A change of variables that makes the curvature about equal in all directions.

        The Hessian's blocks on the diagonal, averaged over the classes, at the base; the ridge comes on top.
        """
        moment = torch.diag(self.ridge.median(0).values)
        for x, _, base in self.parts:
            doubt = 1 - base.softmax(1).square().sum(1, keepdim=True)
            moment = moment + (x * doubt).T @ x / (self.n * len(self.ridge))
        values, vectors = torch.linalg.eigh(moment)
        root: Tensor = (vectors * values.clamp(min=1e-12 * float(values.max())).rsqrt()) @ vectors.T
        return root
