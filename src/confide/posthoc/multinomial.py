"""Multinomial logistic regression toward a prior: logits = base + D (x, 1), with a ridge on each entry of D."""

from __future__ import annotations

import torch
from torch import Tensor

from confide.core.simplex import one_hot
from confide.posthoc.layout import pieces
from confide.posthoc.newton import descend, minimise

DENSE = 600  # parameters up to which the Hessian is cheaper than many steps without it


def fit(
    x: Tensor, y: Tensor, base: Tensor, ridge: Tensor, start: Tensor | None = None, rough: bool = False
) -> tuple[Tensor, bool]:
    """D (C, F + 1) of the lowest mean NLL + sum(ridge * D**2) / 2, and whether the search ended by itself.

    A `rough` one is good to about 1e-5 of the NLL, which is enough to choose by.
    """
    problem = _Problem(x, y, base, ridge)
    start = torch.zeros_like(ridge) if start is None else start
    if ridge.numel() <= DENSE:
        found, converged = minimise(
            problem.value, problem.newton, start.reshape(-1), tolerance=1e-5 if rough else 1e-10
        )
        return found.view_as(ridge), converged
    scale = problem.scale()

    def slope(u: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = problem.slope(u @ scale)
        return value, gradient @ scale

    found, converged = descend(slope, torch.linalg.solve(scale, start, left=False), tolerance=1e-3 if rough else 3e-5)
    return found @ scale, converged


class _Problem:
    """Sums over rows, part by part."""

    def __init__(self, x: Tensor, y: Tensor, base: Tensor, ridge: Tensor) -> None:
        self.n, self.ridge = len(x), ridge
        x = torch.cat((x, x.new_ones(self.n, 1)), 1)
        self.right = one_hot(base, y).T @ x / self.n  # what the labels add to the gradient, and to the value below
        self.offset = float(base.gather(1, y[:, None]).mean())
        size = len(next(pieces(base)))
        self.parts = list(zip(torch.split(x, size), torch.split(base, size), strict=True))

    def value(self, flat: Tensor) -> Tensor:
        """The objective, with D as one vector."""
        d = flat.view_as(self.ridge)
        norm = sum((base + x @ d.T).logsumexp(1).sum() for x, base in self.parts)
        found: Tensor = norm / self.n - self.offset + ((self.ridge * d / 2 - self.right) * d).sum()
        return found

    def slope(self, d: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient at D."""
        value, gradient = ((self.ridge * d / 2 - self.right) * d).sum() - self.offset, self.ridge * d - self.right
        for x, base in self.parts:
            z = torch.addmm(base, x, d.T)
            norm = z.logsumexp(1, keepdim=True)
            value = value + norm.sum() / self.n
            gradient = gradient + (z - norm).exp_().T @ x / self.n
        return value, gradient

    def newton(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Gradient and Hessian, with D as one vector."""
        d = flat.view_as(self.ridge)
        gradient, hessian = self.ridge * d - self.right, torch.diag(self.ridge.reshape(-1))
        for x, base in self.parts:
            p = (base + x @ d.T).softmax(1)
            mixed = (p[:, :, None] * x[:, None, :]).reshape(len(x), -1)
            blocks = (mixed.T @ x).view(*self.ridge.shape, -1)
            gradient = gradient + p.T @ x / self.n
            hessian = hessian + (torch.block_diag(*blocks) - mixed.T @ mixed) / self.n
        return gradient.reshape(-1), hessian

    def scale(self) -> Tensor:
        """A change of variables that makes the curvature about equal in all directions.

        The Hessian's blocks on the diagonal, averaged over the classes, at the base; the ridge comes on top.
        """
        moment = torch.diag(self.ridge.median(0).values)
        for x, base in self.parts:
            doubt = 1 - base.softmax(1).square().sum(1, keepdim=True)
            moment = moment + (x * doubt).T @ x / (self.n * len(self.ridge))
        values, vectors = torch.linalg.eigh(moment)
        root: Tensor = (vectors * values.clamp(min=1e-12 * float(values.max())).rsqrt()) @ vectors.T
        return root
