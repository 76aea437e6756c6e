"""Vector scaling: a factor and a bias for each logit."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from confide.core.simplex import one_hot
from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values, setting
from confide.posthoc.layout import pieces
from confide.posthoc.newton import descend, minimise
from confide.posthoc.temperature import fit_scale

DENSE = 300  # classes up to which the Hessian is cheaper than many steps without it


@dataclass(eq=False, kw_only=True)
class VectorScaling(Calibrator):
    """softmax(w * z + b), with w and b drawn toward temperature scaling."""

    strength: float = setting(1.0, low=0, high=1e6, doc="how strongly w and b are drawn toward temperature scaling")
    card = Card(
        title="Vector scaling",
        cite="Guo et al., ICML 2017",
        formula="w * z + b",
        when="classes that are over- or underrated as such; some dozen rows a class",
        differs=(
            "The paper fits 2 C parameters by NLL alone. Here a ridge draws them toward z / T: at strength 1 it weighs "
            "as much as a prior under which a logit moves by about 1; 0 is the paper's. Softmax outputs know logits up "
            "to a constant a row only, which w would have seen."
        ),
        affine=True,
    )

    weight_: Tensor = field(init=False, repr=False)
    bias_: Tensor = field(init=False, repr=False)

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        start = fit_scale(z, y)
        z = z.double()
        temperature = start.values["temperature"].to(z.device)
        problem = _Problem(z, y, z / temperature, self.strength)
        if z.shape[1] <= DENSE:
            d, converged = minimise(problem.value, problem.newton, problem.zero())
        else:
            d, converged = problem.descend()
        w, b = d.split(z.shape[1])
        return Learnt({"weight": 1 / temperature + w, "bias": b}, converged, start.note)

    def map(self, z: Tensor, values: Values) -> Tensor:
        return z * values["weight"].to(z.dtype) + values["bias"].to(z.dtype)


class _Problem:
    """The NLL of base + w * z + b with its derivatives in (w, b), summed part by part."""

    def __init__(self, z: Tensor, y: Tensor, base: Tensor, strength: float) -> None:
        self.n, self.classes = z.shape
        spread = z.var(0).mean().clamp(min=1e-12)
        prior = torch.cat((spread.expand(self.classes), torch.ones_like(z[0])))
        self.ridge = (strength + 1e-12) / self.n * prior
        hit = one_hot(z, y)
        self.right = torch.cat(((hit * z).sum(0), hit.sum(0))) / self.n  # what the labels add to the gradient
        self.offset = float(base.gather(1, y[:, None]).mean())
        size = len(next(pieces(z)))
        self.parts = list(zip(torch.split(z, size), torch.split(base, size), strict=True))

    def zero(self) -> Tensor:
        return torch.zeros_like(self.ridge)

    def value(self, d: Tensor) -> Tensor:
        """The objective."""
        w, b = d.split(self.classes)
        norm = sum(torch.addcmul(base + b, z, w).logsumexp(1).sum() for z, base in self.parts)
        found: Tensor = norm / self.n - self.offset + ((self.ridge * d / 2 - self.right) * d).sum()
        return found

    def slope(self, d: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient."""
        w, b = d.split(self.classes)
        value, gradient = ((self.ridge * d / 2 - self.right) * d).sum() - self.offset, self.ridge * d - self.right
        for z, base in self.parts:
            new = torch.addcmul(base + b, z, w)
            norm = new.logsumexp(1, keepdim=True)
            p = (new - norm).exp_()
            value = value + norm.sum() / self.n
            gradient = gradient + torch.cat(((p * z).sum(0), p.sum(0))) / self.n
        return value, gradient

    def newton(self, d: Tensor) -> tuple[Tensor, Tensor]:
        """Gradient and Hessian."""
        w, b = d.split(self.classes)
        gradient, hessian = self.ridge * d - self.right, torch.diag(self.ridge)
        for z, base in self.parts:
            p = torch.addcmul(base + b, z, w).softmax(1)
            pz = p * z
            both = torch.cat((pz, p), 1)
            first, cross = both.sum(0), torch.diag(pz.sum(0))
            own = torch.cat(
                (
                    torch.cat((torch.diag((pz * z).sum(0)), cross), 1),
                    torch.cat((cross, torch.diag(p.sum(0))), 1),
                )
            )
            gradient = gradient + first / self.n
            hessian = hessian + (own - both.T @ both) / self.n
        return gradient, hessian

    def descend(self) -> tuple[Tensor, bool]:
        """Without the Hessian, in variables in which its diagonal is about one."""
        curve = self.ridge.clone()
        for z, base in self.parts:
            p = base.softmax(1)
            p = p * (1 - p)
            curve = curve + torch.cat(((p * z * z).sum(0), p.sum(0))) / self.n
        scale = curve.rsqrt()

        def slope(u: Tensor) -> tuple[Tensor, Tensor]:
            value, gradient = self.slope(u * scale)
            return value, gradient * scale

        found, converged = descend(slope, self.zero())
        return found * scale, converged
