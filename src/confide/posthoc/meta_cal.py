"""Meta-Cal: rows of high entropy are given up, the others are tempered."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values, setting
from confide.posthoc.temperature import fit_scale

PART, MOST = 10, 500  # the threshold is set on one tenth of the rows, but no more than so many


@dataclass(eq=False, kw_only=True)
class MetaCal(Calibrator):
    """Uniform where the entropy exceeds a threshold, softmax(z / T) elsewhere."""

    miscoverage: float = setting(0.05, low=0, high=1, doc="share of right predictions that may be given up (alpha)")
    seed: int = setting(0, low=0, high=2**31, doc="of the split between threshold and temperature")
    card = Card(
        title="Meta-Cal",
        cite="Ma and Blaschko, ICML 2021",
        formula="1 / C where entropy > threshold, else softmax(z / T)",
        when="rows may be given up, so that the rest can be trusted; changes accuracy",
        differs="As released: 1/10 of the rows (500 at most) set the threshold, at the higher 1 - alpha quantile.",
        exempt={"never_worse": "rows that are given up get 1 / C by definition, whatever that costs; it warns"},
    )

    temperature_: float = field(init=False, repr=False)
    threshold_: float = field(init=False, repr=False)

    def guarded(self) -> bool:
        return False

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        order = torch.randperm(len(z), generator=torch.Generator().manual_seed(self.seed)).to(z.device)
        count = max(1, min(MOST, len(z) // PART))
        held, rest = order[:count], order[count:]
        right = held[z[held].argmax(1) == y[held]]
        note = "" if len(right) else "no right prediction among the rows that set the threshold; none is given up"
        threshold = self._threshold(entropy(z[right].double())) if len(right) else math.inf
        accepted = rest[entropy(z[rest].double()) <= threshold]
        base = fit_scale(z[accepted if len(accepted) > 1 else rest], y[accepted if len(accepted) > 1 else rest])
        values = {"temperature": base.values["temperature"], "threshold": z.new_tensor(threshold, dtype=torch.float64)}
        return Learnt(values, base.converged, note or base.note)

    def map(self, z: Tensor, values: Values) -> Tensor:
        up = entropy(z)[:, None] > values["threshold"].to(z.dtype)
        return torch.where(up, 0.0, z / values["temperature"].to(z.dtype))

    def _threshold(self, found: Tensor) -> float:
        ranked = found.sort().values
        return float(ranked[math.ceil((1 - self.miscoverage) * (len(ranked) - 1))])


def entropy(z: Tensor) -> Tensor:
    """Of each row's probabilities, in nats."""
    log_p = z.log_softmax(1)
    return -(log_p.exp() * log_p).sum(1)
