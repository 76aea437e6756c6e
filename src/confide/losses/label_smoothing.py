"""Label smoothing: train toward a mixture of the label and the uniform distribution."""

from torch import Tensor

from confide.core.knobs import knob
from confide.core.simplex import cross_entropy, log_norm, lowered, one_hot
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss


class LabelSmoothing(Loss):
    """Cross-entropy on labels that give a share of their mass to all classes alike."""

    # An attribute `smoothing` would hide the method of that name.
    epsilon: float = knob(default=0.05, low=0, high=1, alias="smoothing", doc="mass given to the uniform distribution")
    card = Card(
        title="Label smoothing",
        cite="Szegedy et al., CVPR 2016",
        group="smoothing",
        formula="(1 - smoothing) CE + smoothing mean_k(-log p_k)",
        summary="the same softness for every sample, needed or not",
        differs=(
            "The mass is shared by all C classes, as in torch and the MbLS and ACLS code (the MDCA code gives it to "
            "the C-1 others). With class weights torch weighs the smooth part class by class, which moves the optimum; "
            "here a weight multiplies the row and the optimum stays the smoothed label. The ACLS paper's Table 2 row "
            "holds where the prediction is right; where it is wrong f is -smoothing/C on the predicted class."
        ),
    )
    limits = (({"smoothing": 0.0}, CrossEntropy()),)

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        low = lowered(z)
        uniform = log_norm(low).squeeze(1) - low.mean(1)
        return (1 - self.epsilon) * cross_entropy(z, y) + self.epsilon * uniform

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        return self.epsilon * (1 / z.shape[1] - one_hot(z, y))
