"""Beta calibration: a logistic curve in log p and log(1 - p) for each class against the rest."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values
from confide.posthoc.one_vs_rest import labels, logistic, missing, sides

FIRM = 1e6  # a ridge that holds a coefficient at zero


@dataclass(eq=False, kw_only=True)
class Beta(Calibrator):
    """sigmoid(a log p - b log(1 - p) + c) with a, b >= 0 for each class, normalised."""

    card = Card(
        title="Beta calibration",
        cite="Kull, Silva Filho and Flach, AISTATS 2017",
        formula="sigmoid(a_k log p_k - b_k log(1 - p_k) + c_k), normalised",
        when="scores that are skewed, where Platt's symmetric curve does not fit; three numbers a class",
        differs=(
            "The paper and betacal drop a coefficient that comes out negative and fit again, a before b, as here; "
            "netcal fits one joint softmax instead. betacal clips p at the eps of its dtype; here log(1 - p) is exact. "
            "A ridge of 1e-9 on the mean NLL keeps separable data bounded."
        ),
    )

    a_: Tensor = field(init=False, repr=False)
    b_: Tensor = field(init=False, repr=False)
    c_: Tensor = field(init=False, repr=False)

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        log_p, log_q = sides(z.double())
        features = torch.stack((log_p, -log_q, torch.ones_like(log_p)))
        hit = labels(z, y)
        ridge = torch.full((z.shape[1], 3), 1e-9, dtype=log_p.dtype, device=z.device)
        found, converged = logistic(features, hit, ridge)
        for _ in range(2):
            first, second = found[:, 0] < -1e-6, found[:, 1] < -1e-6
            if not bool((first | second).any()):
                break
            ridge[first, 0] = FIRM
            ridge[second & ~first, 1] = FIRM
            found, converged = logistic(features, hit, ridge)
        a, b, c = found.unbind(1)
        return Learnt({"a": a.clamp(min=0), "b": b.clamp(min=0), "c": c}, converged, missing(y, z.shape[1]))

    def map(self, z: Tensor, values: Values) -> Tensor:
        log_p, log_q = sides(z)
        a, b, c = (values[name].to(z.dtype) for name in "abc")
        return torch.nn.functional.logsigmoid(a * log_p - b * log_q + c)
