"""Dual focal loss: a focal loss that also looks at the runner-up to the true class."""

from torch import Tensor, arange, cat, full_like, inf, where, zeros_like

from confide.core.knobs import knob
from confide.core.simplex import log_norm, lowered, one_hot, power, predicted, softmax, top
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.focal import missing, pull
from confide.losses.loss import Card, Loss


class DualFocal(Loss):
    """Cross-entropy times a power of 1 - p_y + p_j, where p_j is the largest probability strictly below p_y."""

    gamma: float = knob(default=5.0, low=0, high=100, doc="power of 1 - p_y + p_j")
    card = Card(
        title="Dual focal loss",
        cite="Tao et al., ICML 2023",
        group="adaptive",
        formula="-(1 - p_y + p_j)^gamma log p_y, p_j the largest below p_y, 0 if none is",
        summary="focal loss that asks for a distance from the runner-up, not for all of the probability",
        differs=(
            "The released code sums over the batch and has gamma 0 unless told otherwise; its published runs use 2.3 "
            "to 6.1. Classes that tie with the true one are not below it. Where several tie just below it, the one "
            "with the lowest number receives the gradient. Soft targets, which the paper leaves open, give the "
            "expected loss of a hard label, each with a runner-up of its own."
        ),
        masked=True,
    )
    limits = (({"gamma": 0.0}, CrossEntropy()),)

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        if y.is_floating_point():
            _, q, _, log_p, rival = _every(z, y)
            return (q * self._focal(log_p, rival)).sum(1)
        _, log_p, rival = _labelled(z, y)
        return self._focal(log_p, rival).squeeze(1)

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        return self._soft_shift(z, y) if y.is_floating_point() else self._hard_shift(z, y)

    def _hard_shift(self, z: Tensor, y: Tensor) -> Tensor:
        below, log_p, rival = _labelled(z, y)
        down, up = self._pulls(log_p, rival)
        p = softmax(z)
        return (p - one_hot(z, y)) * (1 - down) + up * p - where(predicted(below), up, 0.0)

    def _soft_shift(self, z: Tensor, y: Tensor) -> Tensor:
        order, q, following, log_p, rival = _every(z, y)
        down, up = self._pulls(log_p, rival)
        spared, lent = q - q * down, q * up
        received = _with_one_more(zeros_like(q)).scatter_add(1, following, lent)[:, :-1]
        shift = zeros_like(z).scatter(1, order, -spared - received)
        return shift + softmax(z) * (spared + lent).sum(1, keepdim=True)

    def _focal(self, log_p: Tensor, rival: Tensor) -> Tensor:
        return -power(missing(log_p) + rival, self.gamma) * log_p

    def _pulls(self, log_p: Tensor, rival: Tensor) -> tuple[Tensor, Tensor]:
        """The derivatives on log p_y, negated, and on log p_j."""
        lack = missing(log_p) + rival
        return pull(log_p, lack, self.gamma), -self.gamma * power(lack, self.gamma - 1) * rival * log_p


def _labelled(z: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The logits below the true class (others at -inf), its log-probability, and the runner-up's probability."""
    low = lowered(z)
    # Not gather, which the CPU compiler would repeat for every class that is compared.
    mine, norm = where(one_hot(z, y) > 0, low, 0.0).sum(1, keepdim=True), log_norm(low)
    below = where(low < mine, low, -inf)
    return below, mine - norm, (top(below) - norm).exp()


def _every(z: Tensor, q: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The same for each class in turn, in falling order; `following` is where in that order its runner-up stands."""
    low = lowered(z)
    falling, order = low.sort(dim=1, descending=True, stable=True)
    following = _next_lower(falling)
    log_p, q = falling - log_norm(low), q.gather(1, order)
    rival = _with_one_more(log_p.exp()).gather(1, following)
    return order, q, following, where(q > 0, log_p, 0.0), rival


def _next_lower(falling: Tensor) -> Tensor:
    """Where the next lower number stands; one place behind the last if there is none."""
    classes = falling.shape[1]
    place = arange(1, classes, device=falling.device).view(-1, *[1] * (falling.dim() - 2))
    place = where(falling[:, 1:] < falling[:, :-1], place, classes)
    return cat((place, full_like(place[:, :1], classes)), 1).flip(1).cummin(1).values.flip(1)


def _with_one_more(x: Tensor) -> Tensor:
    """A place behind the last, holding 0."""
    return cat((x, zeros_like(x[:, :1])), 1)
