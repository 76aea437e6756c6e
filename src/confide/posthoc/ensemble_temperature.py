"""Ensemble temperature scaling: a mixture of tempered, raw and uniform probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from confide.core.simplex import one_hot
from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values, setting
from confide.posthoc.temperature import fit_scale, searched


@dataclass(eq=False, kw_only=True)
class EnsembleTemperature(Calibrator):
    """w1 softmax(z / T) + w2 softmax(z) + w3 / C."""

    objective: str = setting("nll", choices=("nll", "brier"), doc="what T and the weights minimise")
    card = Card(
        title="Ensemble temperature scaling (ETS)",
        cite="Zhang, Kailkhura and Han (Mix-n-Match), ICML 2020",
        formula="w1 softmax(z / T) + w2 softmax(z) + w3 / C",
        when="temperature scaling that is too bold on its worst errors; keeps the predicted class",
        differs=(
            "The released code minimises the squared error whatever its `loss` argument says: objective='brier'. The "
            "default here is NLL. The weights are the optimum on the simplex, given T."
        ),
        keeps_argmax=True,
        pooled=True,
    )

    temperature_: float = field(init=False, repr=False)
    weights_: Tensor = field(init=False, repr=False)

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        start = fit_scale(z, y) if self.objective == "nll" else searched(z, y, "brier", None)
        z = z.double()
        p = torch.stack(
            ((z / start.values["temperature"]).softmax(1), z.softmax(1), torch.full_like(z, 1 / z.shape[1]))
        )
        weights = _likely(p.gather(2, y.expand(3, -1)[..., None])[..., 0]) if self.objective == "nll" else _near(p, y)
        return Learnt({"temperature": start.values["temperature"], "weights": weights}, start.converged, start.note)

    def map(self, z: Tensor, values: Values) -> Tensor:
        weights = values["weights"].to(z.dtype).log()
        tempered = (z / values["temperature"].to(z.dtype)).log_softmax(1)
        terms = (
            tempered + weights[0],
            z.log_softmax(1) + weights[1],
            torch.zeros_like(z) + weights[2] - math.log(z.shape[1]),
        )
        return torch.stack(terms).logsumexp(0)


def _likely(p: Tensor) -> Tensor:
    """The mixture weights of the highest likelihood of p (3, N): Newton steps on a quadratic model over the simplex."""
    w = torch.tensor([1.0, 0.0, 0.0], dtype=p.dtype, device=p.device)
    p = p.clamp(min=1e-300)
    value = -(w @ p).clamp(min=1e-300).log().mean()
    for _ in range(100):
        ratio = p / (w @ p).clamp(min=1e-300)
        gradient, hessian = -ratio.mean(1), ratio @ ratio.T / p.shape[1]
        aim = _on_simplex(hessian, gradient - hessian @ w)
        step = 1.0
        while step > 1e-10:
            after = -((w + step * (aim - w)) @ p).clamp(min=1e-300).log().mean()
            if after <= value:
                break
            step /= 2
        if step <= 1e-10 or value - after < 1e-14:
            break
        w, value = w + step * (aim - w), after
    return w.clamp(min=0) / w.clamp(min=0).sum()


def _near(p: Tensor, y: Tensor) -> Tensor:
    """The mixture weights of the smallest squared error."""
    flat = p.reshape(3, -1)
    return _on_simplex(flat @ flat.T / len(y), -flat @ one_hot(p[0], y).reshape(-1) / len(y))


def _on_simplex(a: Tensor, b: Tensor) -> Tensor:
    """The w >= 0 with sum 1 of the lowest w' a w / 2 + b w: the best among the solutions on all faces."""
    best, lowest = b.new_tensor([1.0, 0.0, 0.0]), math.inf
    for face in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
        size = len(face)
        system = torch.ones(size + 1, size + 1, dtype=a.dtype, device=a.device)
        system[-1, -1] = 0
        system[:-1, :-1] = a[face][:, face]
        right = torch.cat((-b[face], b.new_ones(1)))
        w = torch.zeros_like(b)
        w[face] = torch.linalg.lstsq(system, right[:, None], driver="gelsd").solution[:-1, 0]
        value = float(w @ a @ w / 2 + b @ w)
        if float(w.min()) >= -1e-12 and abs(float(w.sum()) - 1) < 1e-6 and value < lowest:
            best, lowest = w.clamp(min=0) / w.clamp(min=0).sum(), value
    return best
