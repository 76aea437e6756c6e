"""Focal losses: cross-entropy whose rows weigh less, the more probable their true class is."""

from torch import Tensor, finfo, where

from confide.core.knobs import knob
from confide.core.simplex import expected, expected_shift, power
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss


class Focal(Loss):
    """Cross-entropy times a power of what the true class lacks."""

    gamma: float = knob(default=3.0, low=0, high=100, doc="power of 1 - p_y")
    card = Card(
        title="Focal loss",
        cite="Lin et al., ICCV 2017; Mukhoti et al., NeurIPS 2020",
        group="adaptive",
        formula="-(1 - p_y)^gamma log p_y",
        summary="rows that are right already count less; a label far off pulls harder than in cross-entropy",
        differs=(
            "The ACLS paper's Table 2 gives a constant softening; it depends on p_y and turns negative where p_y is "
            "low (below 0.253 for gamma 3). For gamma < 1 the released code has NaN gradients where p_y rounds to 1; "
            "here they are finite. The released code sums over the batch unless told otherwise, here `reduction` "
            "decides. Soft targets give the expected loss of a hard label."
        ),
        masked=True,
    )
    limits = (({"gamma": 0.0}, CrossEntropy()),)

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        return expected(lambda log_p: -power(missing(log_p), self.gamma) * log_p, z, y)

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        return expected_shift(lambda log_p: pull(log_p, missing(log_p), self.gamma), z, y)


class FocalSD(Loss):
    """Focal loss whose power follows from the probability of the true class."""

    low: float = knob(default=5.0, low=0, high=100, doc="gamma where p_y is below the threshold")
    high: float = knob(default=3.0, low=0, high=100, doc="gamma elsewhere")
    threshold: float = knob(default=0.2, low=0, high=1, doc="probability of the true class where gamma changes")
    card = Card(
        title="Focal loss, sample-dependent",
        cite="Mukhoti et al., NeurIPS 2020",
        group="adaptive",
        formula="-(1 - p_y)^gamma log p_y, gamma = low if p_y < threshold, else high",
        summary="focal loss with gamma 5 where the true class is improbable and 3 elsewhere (FLSD-53)",
        differs=(
            "The ACLS paper's supplement chooses gamma by the probability of the predicted class; the method and all "
            "released code choose it by that of the true class, as here. The released code has three pieces: 5 below "
            "0.2, 3 below 0.5 and its argument `gamma` from there on; with its default of 3 these are the two pieces "
            "here. The loss jumps at the threshold and no gradient flows through the choice. Table 2 calls the "
            "softening constant; it is not (see Focal)."
        ),
        masked=True,
    )
    limits = (
        ({"low": 0.0, "high": 0.0}, CrossEntropy()),
        ({"low": 2.0, "high": 2.0}, Focal(gamma=2.0)),
        ({"threshold": 0.0}, Focal(gamma=3.0)),
    )

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        return expected(self._focal, z, y)

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        return expected_shift(self._pull, z, y)

    def _focal(self, log_p: Tensor) -> Tensor:
        lack = missing(log_p)
        return -where(log_p.exp() < self.threshold, power(lack, self.low), power(lack, self.high)) * log_p

    def _pull(self, log_p: Tensor) -> Tensor:
        lack = missing(log_p)
        low, high = (pull(log_p, lack, gamma) for gamma in (self.low, self.high))
        return where(log_p.exp() < self.threshold, low, high)


def missing(log_p: Tensor) -> Tensor:
    """1 - p without cancellation, and never 0, where powers below 1 have no finite slope."""
    # Between 1 and 1 - eps the logarithm knows no number, so nothing but 0 is raised.
    return (-log_p.expm1()).clamp(min=finfo(log_p.dtype).eps)


def pull(log_p: Tensor, lack: Tensor, gamma: float) -> Tensor:
    """The negated derivative of -lack^gamma log_p on log_p, where lack falls as p grows."""
    return power(lack, gamma) - gamma * log_p.exp() * power(lack, gamma - 1) * log_p
