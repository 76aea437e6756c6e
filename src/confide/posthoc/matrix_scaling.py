"""Matrix scaling: every new logit is a weighted sum of all logits, plus a bias."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from confide.posthoc import multinomial
from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values, setting
from confide.posthoc.temperature import fit_scale


@dataclass(eq=False, kw_only=True)
class MatrixScaling(Calibrator):
    """softmax(W z + b), with W drawn toward temperature scaling."""

    strength: float = setting(1.0, low=0, high=1e6, doc="how strongly W and b are drawn toward temperature scaling")
    card = Card(
        title="Matrix scaling",
        cite="Guo et al., ICML 2017",
        formula="W z + b",
        when="classes that are confused in a systematic way; thousands of rows, the more classes the more",
        differs=(
            "The paper fits C^2 + C parameters by NLL alone and finds it to overfit. Here a ridge draws them toward "
            "z / T: at strength 1 the other logits together move a logit by about 1, and so does the bias; 0 is the "
            "paper's. Logits that are log-probabilities have lost a constant a row, which W and b would have seen."
        ),
        affine=True,
    )

    weight_: Tensor = field(init=False, repr=False)
    bias_: Tensor = field(init=False, repr=False)

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        start = fit_scale(z, y)
        z = z.double()
        base = z / start.values["temperature"]
        d, converged = multinomial.fit(z, y, base, ridge(z, self.strength))
        eye = torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
        values = {"weight": eye / start.values["temperature"].to(z.device) + d[:, :-1], "bias": d[:, -1]}
        return Learnt(values, converged, start.note)

    def map(self, z: Tensor, values: Values) -> Tensor:
        return z @ values["weight"].to(z.dtype).T + values["bias"].to(z.dtype)


def ridge(z: Tensor, strength: float) -> Tensor:
    """What each entry of (W, b) costs: a prior under which all others, each class itself and the bias move it by 1."""
    n, classes = z.shape
    spread = z.var(0).mean().clamp(min=1e-12)
    entries = torch.full((classes, classes + 1), classes, dtype=z.dtype, device=z.device) * spread
    entries[:, :-1].fill_diagonal_(float(spread))
    entries[:, -1] = 1.0
    return strength / n * entries + 1e-12 * torch.cat((entries[:, :-1], torch.ones_like(entries[:, :1])), 1) / n
