"""ACLS: pull the largest logit down and far-away logits up, but only past a margin. Three readings of one paper."""

from dataclasses import replace
from typing import Any

from torch import Tensor, ones_like, where

from confide.core.batch import misplaced
from confide.core.fused import Context
from confide.core.groups import Group
from confide.core.knobs import knob
from confide.core.rows import Rows
from confide.core.simplex import bottom, cross_entropy, lowest, predicted, top
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.history import PAIRED, History, example_index, history_of, shares
from confide.losses.loss import Card, Loss

_CITE = "Park et al., ICCV 2023"
_GROUP = "adaptive + conditional"


class ACLS(Loss):
    """Eq. 13 of the paper with a factor 1/2, differentiated in full, through the maximum and the minimum."""

    margin: float = knob(default=6.0, low=0, high=1000, doc="logit distance left alone (paper: M)")
    top: float = knob(default=0.1, low=0, high=100, doc="strength on the predicted class (paper: lambda_1)")
    rest: float = knob(default=0.01, low=0, high=100, doc="strength on the other classes (paper: lambda_2)")
    form: str = knob(
        default="full", choices=("full", "adaptive", "conditional"), doc="the whole, or an ablation of Table 5"
    )
    condition: str = knob(default="margin", choices=("margin", "ranking"), doc="when it acts: the margin, or as CRL")
    size: int = knob(default=0, low=0, high=10**12, doc="training samples, for condition='ranking'; fixed when built")
    card = Card(
        title="Adaptive and conditional label smoothing",
        cite=_CITE,
        group=_GROUP,
        formula="CE + top/2 max(0, max z - min z - margin)^2 + rest/2 sum_k max(0, max z - z_k - margin)^2",
        summary="MbLS whose push grows with the excess, on both ends of the logits",
        differs=(
            "Eq. 13 differentiated gives twice Eq. 12, hence the 1/2. Eq. 12 holds maximum and minimum still and is "
            "the gradient of no function (ACLSHeld: it drifts); the released code subtracts no minimum (ACLSReleased). "
            "Differentiated in full the gradient sums to zero over the classes and a constant added to all logits "
            "changes nothing. `form` gives the ablations of Table 5: 'adaptive' has no condition (the squares of the "
            "distances less the margin as they are), 'conditional' a constant push. condition='ranking' is row 3 of "
            "Table 6, of which there is no released code: the push of 'adaptive' (or a constant one) on rows that "
            "stand in the wrong order of confidence to the next row of the batch or to the one before, by how often "
            "the samples were right so far. It needs size= and index=, as CRL does."
        ),
    )
    limits = (({"top": 0.0, "rest": 0.0}, CrossEntropy()),)

    def __post_init__(self) -> None:
        self.history = History(self.size) if self.size or self.condition == "ranking" else None

    @classmethod
    def example(cls, **settings: Any) -> "ACLS":
        if settings.get("condition") != "ranking":
            return cls(**settings)
        loss = cls(**{"size": 64} | settings)
        loss.history = History.example()
        return loss

    @property
    def traits(self) -> Card:
        return self.card if self.condition == "margin" else _RANKED

    def example_side(self, shape: tuple[int, ...]) -> dict[str, Tensor]:
        return example_index(shape)

    def epoch_end(self, group: Group = None) -> None:
        """Let what this epoch brought count from now on; with a `group`, what it brought to any of its processes."""
        history_of(self).epoch_end(group)

    def context(self, rows: Rows, index: Tensor | None = None) -> Context:
        return shares(self, rows, index) if self.condition == "ranking" else ()

    def loss(self, z: Tensor, y: Tensor, *ranks: Tensor) -> Tensor:
        high = top(z)
        spread = self._penalty(high - bottom(z) - self.margin).squeeze(1)
        others = self._penalty(high - z - self.margin).sum(1) - self._penalty(self._own(z))
        penalty = self.top * spread + self.rest * others
        return cross_entropy(z, y) + (where(self._misplaced(z, *ranks), penalty, 0.0) if ranks else penalty)

    def shift(self, z: Tensor, y: Tensor, *ranks: Tensor) -> Tensor:
        high, low, winner = top(z), bottom(z), predicted(z)
        spread = self.top * self._push(high - low - self.margin)
        others = self.rest * self._push(high - z - self.margin)
        down = spread + others.sum(1, keepdim=True) - self.rest * self._push(self._own(z))
        shift = where(winner, -down, others) + where(lowest(z == low, z), spread, 0.0)
        return where(self._misplaced(z, *ranks).unsqueeze(1), shift, 0.0) if ranks else shift

    def _own(self, z: Tensor) -> Tensor:
        """The predicted class's excess over itself, which the sum over the others must leave out."""
        return z.new_full((), -self.margin)

    def _penalty(self, excess: Tensor) -> Tensor:
        excess = self._beyond(excess)
        return excess if self.form == "conditional" else excess.square() / 2

    def _push(self, excess: Tensor) -> Tensor:
        """The derivative of the penalty."""
        if self.form == "conditional":
            return ones_like(excess) if self.condition == "ranking" else (excess > 0).to(excess.dtype)
        return self._beyond(excess)

    def _beyond(self, excess: Tensor) -> Tensor:
        return excess if self.form == "adaptive" or self.condition == "ranking" else excess.relu()

    def _misplaced(self, z: Tensor, weight: Tensor, history: Tensor) -> Tensor:
        """CRL's condition; without one where the form has none."""
        if self.form == "adaptive":
            return weight >= 0
        return misplaced(z.detach(), weight, history)


_RANKED = replace(ACLS.card, coupled=True, exempt=PAIRED)


class ACLSHeld(Loss):
    """Eq. 12 of the paper as printed, with maximum and minimum held still: the gradient of no function. It drifts."""

    margin: float = knob(default=6.0, low=0, high=1000, doc="logit distance left alone (paper: M)")
    top: float = knob(default=0.1, low=0, high=100, doc="strength on the predicted class (paper: lambda_1)")
    rest: float = knob(default=0.01, low=0, high=100, doc="strength on the other classes (paper: lambda_2)")
    card = Card(
        title="ACLS, Eq. 12 as printed",
        cite=_CITE,
        group=_GROUP,
        formula=(
            "CE, and a gradient: +top max(0, z_j - min z - margin) if j is predicted, "
            "else -rest max(0, max z - z_j - margin)"
        ),
        summary="for study only: its gradients do not sum to zero and all logits drift together",
        differs=(
            "Eq. 12 is what the paper derives, Eq. 13 what it minimises; they differ by a factor 2 and by the "
            "gradients through the maximum and the minimum. Without those the push on all logits together is not zero: "
            "nothing brings the mean logit back and training can run away. Use ACLS."
        ),
        balanced=False,
    )
    limits = (({"top": 0.0, "rest": 0.0}, CrossEntropy()),)

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        spread = (top(z) - bottom(z).detach() - self.margin).relu().square().squeeze(1)
        others = (top(z).detach() - z - self.margin).relu().square().sum(1)
        return cross_entropy(z, y) + self.top / 2 * spread + self.rest / 2 * others

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        high, low = top(z), bottom(z)
        spread = self.top * (high - low - self.margin).relu()
        return where(predicted(z), -spread, self.rest * (high - z - self.margin).relu())


class ACLSReleased(Loss):
    """What the released code computes: no minimum subtracted, squares without 1/2, the others divided by C - 1."""

    margin: float = knob(default=10.0, low=0, high=1000, doc="largest logit, and logit distance, left alone (paper: M)")
    top: float = knob(default=0.1, low=0, high=100, doc="strength on the predicted class (code: alpha * pos_lambda)")
    rest: float = knob(default=0.01, low=0, high=100, doc="strength on the other classes (code: alpha * neg_lambda)")
    card = Card(
        title="ACLS, as released",
        cite=_CITE,
        group=_GROUP,
        formula="CE + top max(0, max z - margin)^2 + rest/(C-1) sum_k max(0, max z held - z_k - margin)^2",
        summary="the code behind the published numbers: an upper bound on the largest logit itself",
        differs=(
            "Against Eq. 13: no minimum is subtracted, so that a constant added to all logits changes the loss and "
            "all-negative logits are never touched; the sum over the other classes is divided by C - 1; the maximum is "
            "held still in it. Tied maxima count once each in the first term and send all of it to the lowest."
        ),
        invariant=False,
        balanced=False,
    )
    limits = (({"top": 0.0, "rest": 0.0}, CrossEntropy()),)

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        height = (top(z) - self.margin).relu().square().squeeze(1)
        others = (top(z).detach() - z - self.margin).relu().square().sum(1)
        return cross_entropy(z, y) + self.top * self._tied(z).squeeze(1) * height + self._rate(z) * others

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        high = top(z)
        height = self.top * self._tied(z) * (high - self.margin).relu()
        return 2 * where(predicted(z), -height, self._rate(z) * (high - z - self.margin).relu())

    def _tied(self, z: Tensor) -> Tensor:
        return (z == z.amax(1, keepdim=True)).to(z.dtype).sum(1, keepdim=True)

    def _rate(self, z: Tensor) -> float:
        return self.rest / (z.shape[1] - 1)
