"""Platt scaling: a logistic curve for each class against the rest."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values
from confide.posthoc.one_vs_rest import labels, logistic, missing, sides


@dataclass(eq=False, kw_only=True)
class Platt(Calibrator):
    """sigmoid(w s + b) of each class's log-odds s against the rest, normalised."""

    card = Card(
        title="Platt scaling",
        cite="Platt, 1999",
        formula="sigmoid(w_k log(p_k / (1 - p_k)) + b_k), normalised",
        when="one output or labels of yes and no with an offset; two numbers a class",
        differs=(
            "Targets are Platt's own, (N+ + 1) / (N+ + 2) and 1 / (N- + 2), which keep separable data bounded; most "
            "code uses 0 and 1. With several classes it works on log-odds, not on probabilities."
        ),
    )

    weight_: Tensor = field(init=False, repr=False)
    bias_: Tensor = field(init=False, repr=False)

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        log_p, log_q = sides(z.double())
        hit = labels(z, y)
        yes = hit.sum(0)
        no = len(hit) - yes
        target = torch.where(hit > 0, (yes + 1) / (yes + 2), 1 / (no + 2))
        odds = log_p - log_q
        features = torch.stack((odds, torch.ones_like(odds)))
        found, converged = logistic(features, target, torch.full((2,), 1e-12, dtype=odds.dtype, device=z.device))
        return Learnt({"weight": found[:, 0], "bias": found[:, 1]}, converged, missing(y, z.shape[1]))

    def map(self, z: Tensor, values: Values) -> Tensor:
        log_p, log_q = sides(z)
        score = (log_p - log_q) * values["weight"].to(z.dtype) + values["bias"].to(z.dtype)
        return torch.nn.functional.logsigmoid(score)
