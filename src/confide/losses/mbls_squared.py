"""MbLS with a squared penalty: the push grows with what a logit distance exceeds the margin by."""

from torch import Tensor, where

from confide.core.knobs import knob
from confide.core.simplex import cross_entropy, predicted, top
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss


class MbLSSquared(Loss):
    """Cross-entropy with a squared penalty on logit distances beyond a margin."""

    margin: float = knob(default=10.0, low=0, high=1000, doc="logit distance left alone (paper: m)")
    strength: float = knob(default=0.1, low=0, high=100, doc="weight of the penalty (paper: lambda)")
    over: str = knob(default="mean", choices=("mean", "sum"), doc="over the classes: mean as released")
    card = Card(
        title="Margin-based label smoothing, squared",
        cite="Murugesan et al., Medical Image Analysis 2023",
        group="conditional",
        formula="CE + strength * over_k max(0, max_j z_j - z_k - margin)^2",
        summary="MbLS with a gentle start: the push grows with the excess",
        differs=(
            "The released code (LogitMarginL2) lacks the hinge: it squares the distance minus the margin as it is, so "
            "that distances below the margin are pushed up to it and the predicted class adds a constant. Here is the "
            "hinge. Where every distance exceeds the margin both have the same gradient. The released code takes the "
            "mean over the classes, MbLS is printed with a sum: `over` chooses."
        ),
    )
    limits = (({"strength": 0.0}, CrossEntropy()),)

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(z, y) + self._rate(z) * self._excess(z).square().sum(1)

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        push = 2 * self._rate(z) * self._excess(z)
        return where(predicted(z), -push.sum(1, keepdim=True), push)

    def _excess(self, z: Tensor) -> Tensor:
        return (top(z) - z - self.margin).relu()

    def _rate(self, z: Tensor) -> float:
        return self.strength / z.shape[1] if self.over == "mean" else self.strength
