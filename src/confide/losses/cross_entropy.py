"""Cross-entropy: the loss that every other one starts from, and that pushes logits apart for ever."""

from torch import Tensor, zeros_like

from confide.core import simplex
from confide.losses.loss import Card, Loss


class CrossEntropy(Loss):
    """Cross-entropy, equal to torch's."""

    card = Card(
        title="Cross-entropy",
        cite="Good, 1952 (logarithmic score)",
        group="baseline",
        formula="-log p_y",
        summary="the baseline: logits grow without limit, and confidence with them",
        differs="Nowhere. The ACLS paper's Eq. 1 also calls it an expectation of p; only its sum is right.",
        masked=True,
    )
    limits = ()

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        return simplex.cross_entropy(z, y)

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        return zeros_like(z)
