"""Margin-based label smoothing: penalise a logit only for what its distance to the largest exceeds a margin by."""

from torch import Tensor, where

from confide.core.knobs import knob
from confide.core.simplex import cross_entropy, predicted, top
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss


class MbLS(Loss):
    """Cross-entropy with a linear penalty on logit distances beyond a margin."""

    margin: float = knob(default=10.0, low=0, high=1000, doc="logit distance left alone (paper: m)")
    strength: float = knob(default=0.1, low=0, high=100, doc="weight of the penalty (paper: lambda)")
    over: str = knob(default="mean", choices=("mean", "sum"), doc="over the classes: mean as released, sum as printed")
    card = Card(
        title="Margin-based label smoothing",
        cite="Liu et al., CVPR 2022",
        group="conditional",
        formula="CE + strength * over_k max(0, max_j z_j - z_k - margin)",
        summary="logits may differ by a margin; only what lies beyond is penalised",
        differs=(
            "The paper sums over the classes, the released code takes the mean: with C classes its strength is C "
            "times weaker than printed; `over` chooses. The ACLS paper's Table 2 says that the predicted class gets "
            "no push; it does (as much as all others together get), since the released code does not hold the "
            "maximum still. The released code ignores no label -100 in the penalty; here ignored is ignored."
        ),
    )
    limits = (({"strength": 0.0}, CrossEntropy()),)

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(z, y) + self._rate(z) * (top(z) - z - self.margin).relu().sum(1)

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        beyond = (top(z) - z > self.margin).to(z.dtype)
        return self._rate(z) * where(predicted(z), -beyond.sum(1, keepdim=True), beyond)

    def _rate(self, z: Tensor) -> float:
        return self.strength / z.shape[1] if self.over == "mean" else self.strength
