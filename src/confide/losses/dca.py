"""DCA: over a batch, the mean confidence should be the accuracy."""

from torch import Tensor

from confide.core.batch import confidence, confidence_slope, correct, elsewhere, mean
from confide.core.fused import Context
from confide.core.groups import CHOICES, KIND, Group, alone
from confide.core.knobs import knob
from confide.core.rows import Rows, clean
from confide.core.simplex import cross_entropy
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss


class DCA(Loss):
    """Cross-entropy, and the gap between mean confidence and accuracy."""

    strength: float = knob(default=1.0, low=0, high=1000, doc="weight of the gap (paper: beta)")
    group: Group = knob(default=None, choices=CHOICES, kind=KIND, doc="processes whose batches count as one")
    card = Card(
        title="Difference between confidence and accuracy",
        cite="Liang et al., BMVC 2020",
        group="batch statistics",
        formula="CE + strength * |mean_n max_k p_k - mean_n [right]|",
        summary="one number for the whole batch: overconfident rows can be paid for by underconfident ones",
        differs=(
            "Paper and released code agree. Whether a row is right is held still. Under a soft target a row is right "
            "with the probability that the target gives to the predicted class."
        ),
        masked=True,
        coupled=True,
        exempt={
            "accumulation_is_one_batch": "the absolute gap of the whole batch is not the sum of those of its parts",
        },
    )
    limits = (({"strength": 0.0}, CrossEntropy()),)

    def context(self, rows: Rows) -> Context:
        if alone(self.group):
            return ()
        return elsewhere(self._gap, clean(rows.z, rows.y, self.ignore_index, self.weight), self.group)

    def loss(self, z: Tensor, y: Tensor, weight: Tensor, *others: Tensor) -> Tensor:
        (gap,) = self._gap(z, y, weight, *others)
        return cross_entropy(z, y) + self.strength * gap.abs().sum()

    def shift(self, z: Tensor, y: Tensor, weight: Tensor, *others: Tensor) -> Tensor:
        (gap,) = self._gap(z, y, weight, *others)
        return -self.strength * gap.sign() * confidence_slope(z)

    def _gap(self, z: Tensor, y: Tensor, weight: Tensor, others: Tensor | float = 0.0) -> tuple[Tensor]:
        return (mean(confidence(z) - correct(z, y), weight) + others,)
