"""Matrix scaling: every new logit is a weighted sum of all logits, plus a bias."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from confide.posthoc import multinomial
from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values, setting
from confide.posthoc.temperature import fit_scale

STRENGTHS = (100.0, 10.0, 1.0)


@dataclass(eq=False, kw_only=True)
class MatrixScaling(Calibrator):
    """softmax(W z + b), with W drawn toward temperature scaling."""

    strength: float | str = setting(
        "auto", low=0, high=1e6, choices=("auto",), kind=(int, float), doc="how strongly W is drawn to z / T"
    )
    card = Card(
        title="Matrix scaling",
        cite="Guo et al., ICML 2017",
        formula="W z + b",
        when="classes that are confused in a systematic way; thousands of rows, the more classes the more",
        differs=(
            "The paper fits C^2 + C parameters by NLL alone and finds it to overfit. Here a ridge draws them toward "
            "z / T: at strength 1 the other logits together move a logit by about 1; 'auto' takes 100, 10 or 1 by a "
            "third of the rows held out; 0 is the paper's. Logits that are log-probabilities have lost a constant a "
            "row, which W and b would have seen."
        ),
        affine=True,
    )

    weight_: Tensor = field(init=False, repr=False)
    bias_: Tensor = field(init=False, repr=False)

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        start = fit_scale(z, y)
        z = z.double()
        temperature = start.values["temperature"].to(z.device)
        d, converged = drawn_in(z, y, z / temperature, self.strength)
        eye = torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
        return Learnt({"weight": eye / temperature + d[:, :-1], "bias": d[:, -1]}, converged, start.note)

    def map(self, z: Tensor, values: Values) -> Tensor:
        return z @ values["weight"].to(z.dtype).T + values["bias"].to(z.dtype)


def drawn_in(z: Tensor, y: Tensor, base: Tensor, strength: float | str) -> tuple[Tensor, bool]:
    """The D of the lowest penalised NLL of base + D (z, 1)."""
    if not isinstance(strength, str):
        return multinomial.fit(z, y, base, ridge(z, strength))
    chosen, start = _chosen(z, y, base)
    return multinomial.fit(z, y, base, ridge(z, chosen), start)


def _chosen(z: Tensor, y: Tensor, base: Tensor) -> tuple[float, Tensor | None]:
    """From strong to weak, as long as held-out rows become more likely; and the D that showed it."""
    order = torch.randperm(len(z), generator=torch.Generator().manual_seed(0)).to(z.device)
    held, rest = order[: len(z) // 3], order[len(z) // 3 :]
    best, found, lowest = STRENGTHS[0], None, F.cross_entropy(base[held], y[held]) if len(held) else -1.0
    d: Tensor | None = None
    for strength in STRENGTHS:
        d, _ = multinomial.fit(z[rest], y[rest], base[rest], ridge(z[rest], strength), d, rough=True)
        value = F.cross_entropy(base[held] + z[held] @ d[:, :-1].T + d[:, -1], y[held])
        if not value < lowest:
            break
        best, found, lowest = strength, d, value
    return best, found


def ridge(z: Tensor, strength: float) -> Tensor:
    """What each entry of (W, b) costs: a prior under which all others, each class itself and the bias move it by 1."""
    n, classes = z.shape
    spread = z.var(0).mean().clamp(min=1e-12)
    entries = torch.full((classes, classes + 1), classes, dtype=z.dtype, device=z.device) * spread
    entries[:, :-1].fill_diagonal_(float(spread))
    entries = max(strength, 1e-12) / n * entries
    entries[:, -1] = min(max(strength, 1e-12), 1.0) / n
    return entries
