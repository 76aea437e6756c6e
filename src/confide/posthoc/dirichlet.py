"""Dirichlet calibration: a linear map of log-probabilities, with off-diagonal and intercept regularisation (ODIR)."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from confide.posthoc import multinomial
from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values, setting
from confide.posthoc.matrix_scaling import drawn_in, ridge
from confide.posthoc.temperature import fit_scale


@dataclass(eq=False, kw_only=True)
class Dirichlet(Calibrator):
    """softmax(W log p + b)."""

    off_diagonal: float | str = setting("auto", low=0, high=1e6, choices=("auto",), kind=(int, float), doc="lambda")
    intercept: float | str = setting("auto", low=0, high=1e6, choices=("auto",), kind=(int, float), doc="mu")
    card = Card(
        title="Dirichlet calibration",
        cite="Kull et al., NeurIPS 2019",
        formula="W log softmax(z) + b",
        when="as matrix scaling; sees probabilities only, so that logits and log-probabilities give the same",
        differs=(
            "The paper divides ODIR by k(k - 1) and k, the released code (dirichletcal) does so only with reg_norm; "
            "off_diagonal and intercept are the undivided lambda and mu, on the mean NLL, with a free diagonal. The "
            "paper searches a grid for them; 'auto' is as in MatrixScaling and holds the diagonal, too."
        ),
    )

    weight_: Tensor = field(init=False, repr=False)
    bias_: Tensor = field(init=False, repr=False)

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        log_p = z.double().log_softmax(1)
        start = fit_scale(log_p, y)
        temperature = start.values["temperature"].to(z.device)
        own = torch.eye(z.shape[1], dtype=torch.bool, device=z.device)
        if self.off_diagonal == "auto" and self.intercept == "auto":
            d, converged = drawn_in(log_p, y, log_p / temperature, "auto")
        else:
            cost = ridge(log_p, 1.0)
            if self.off_diagonal != "auto":
                cost[:, :-1] = torch.where(own, 1e-6 * cost[:, :-1], 2 * float(self.off_diagonal))
            if self.intercept != "auto":
                cost[:, -1] = 2 * float(self.intercept)
            d, converged = multinomial.fit(log_p, y, log_p / temperature, cost.clamp(min=1e-12))
        return Learnt({"weight": own / temperature + d[:, :-1], "bias": d[:, -1]}, converged, start.note)

    def map(self, z: Tensor, values: Values) -> Tensor:
        return z.log_softmax(1) @ values["weight"].to(z.dtype).T + values["bias"].to(z.dtype)
