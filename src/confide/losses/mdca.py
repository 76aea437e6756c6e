"""MDCA: over a batch, every class should be predicted as often as it occurs."""

from torch import Tensor

from confide.core.batch import elsewhere, mean, tilt
from confide.core.fused import Context
from confide.core.groups import CHOICES, KIND, Group, alone
from confide.core.knobs import knob
from confide.core.rows import Rows, clean
from confide.core.simplex import cross_entropy, one_hot, softmax
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss


class MDCA(Loss):
    """Cross-entropy, and for each class the gap between its mean probability and its share of the labels."""

    strength: float = knob(default=1.0, low=0, high=1000, doc="weight of the gaps (paper: beta)")
    group: Group = knob(default=None, choices=CHOICES, kind=KIND, doc="processes whose batches count as one")
    card = Card(
        title="Multi-class difference in confidence and accuracy",
        cite="Hebbalaguppe et al., CVPR 2022",
        group="batch statistics",
        formula="CE + strength * mean_k |mean_n p_k - mean_n q_k|",
        summary="over a batch, each class should get as much probability as it has labels",
        differs=(
            "The released code takes the mean over the classes, as here; the ACLS paper's supplement (Eq. 9) sums, "
            "which is C times as strong. Its Eq. 10 takes the sign of an absolute value, which would leave no gradient "
            "at all. With only the predicted class overconfident f is 2 s p (1-p) there, of which Table 2 prints half, "
            "and 2 s p_j p elsewhere, where it prints s p_j (1+p), with s = strength/C. The released code counts "
            "labels in float32 and lets ignored rows into the mean probability; here they stay out. For its "
            "combination with focal loss add the penalty alone: Focal() + MDCA().penalty_only()."
        ),
        coupled=True,
        exempt={
            "accumulation_is_one_batch": "an absolute gap of the whole batch is not the sum of those of its parts",
        },
    )
    limits = (({"strength": 0.0}, CrossEntropy()),)

    def context(self, rows: Rows) -> Context:
        if alone(self.group):
            return ()
        return elsewhere(self._gap, clean(rows.z, rows.y, self.ignore_index, self.weight), self.group)

    def loss(self, z: Tensor, y: Tensor, weight: Tensor, *others: Tensor) -> Tensor:
        (gap,) = self._gap(z, y, weight, *others)
        return cross_entropy(z, y) + self.strength * gap.abs().mean()

    def shift(self, z: Tensor, y: Tensor, weight: Tensor, *others: Tensor) -> Tensor:
        (gap,) = self._gap(z, y, weight, *others)
        return -tilt(softmax(z), self.strength / z.shape[1] * gap.sign())

    def _gap(self, z: Tensor, y: Tensor, weight: Tensor, others: Tensor | float = 0.0) -> tuple[Tensor]:
        return (mean(softmax(z) - one_hot(z, y), weight) + others,)
