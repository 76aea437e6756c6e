"""Confidence penalty: reward the entropy of the prediction."""

from torch import Tensor, inf

from confide.core.knobs import knob
from confide.core.simplex import cross_entropy, log_norm, lowered, softmax
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss


class ConfidencePenalty(Loss):
    """Cross-entropy minus a multiple of the prediction's entropy."""

    strength: float = knob(default=0.1, low=0, high=100, doc="weight of the entropy (paper: beta)")
    over: str = knob(default="sum", choices=("sum", "mean"), doc="over the classes: sum is the entropy, mean the ECP")
    card = Card(
        title="Confidence penalty",
        cite="Pereyra et al., ICLR workshop 2017",
        group="adaptive",
        formula="CE - strength * over_k(-p_k log p_k)",
        summary="predictions with little entropy cost more; the push fades as p nears a corner",
        differs=(
            "The paper subtracts the entropy, a sum over the classes; the explicit confidence penalty (ECP) of the "
            "MbLS code takes the mean: with C classes its strength is C times weaker. `over` chooses; the mean counts "
            "no masked class. The released code clamps p at 1e-10 and so gives classes below it no gradient of the "
            "entropy; here nothing is clamped."
        ),
        masked=True,
    )
    limits = (({"strength": 0.0}, CrossEntropy()),)

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        entropy = log_norm(lowered(z)) - _mean(z)
        return cross_entropy(z, y) - (self._rate(z) * entropy).squeeze(1)

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        return self._rate(z) * softmax(z) * (_mean(z) - _finite(z))

    def _rate(self, z: Tensor) -> float | Tensor:
        return self.strength / (z > -inf).to(z.dtype).sum(1, keepdim=True) if self.over == "mean" else self.strength


def _mean(z: Tensor) -> Tensor:
    """The expected lowered logit."""
    return (softmax(z) * _finite(z)).sum(1, keepdim=True)


def _finite(z: Tensor) -> Tensor:
    """Lowered logits; where one is below -1000, its probability is 0 in float64, too."""
    return lowered(z).clamp(min=-1000)
