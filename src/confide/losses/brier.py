"""Brier score: the squared distance between prediction and label."""

from torch import Tensor

from confide.core.simplex import one_hot, softmax
from confide.losses.loss import Card, Loss


class Brier(Loss):
    """The sum over the classes of the squared difference between probability and label."""

    card = Card(
        title="Brier score",
        cite="Brier, 1950",
        group="proper score",
        formula="sum_k (p_k - q_k)^2",
        summary="a bounded proper score: rows that are hopelessly wrong push no more",
        differs=(
            "Summed over the classes, as in the MbLS code, it reaches from 0 to 2; with two classes that is twice "
            "scikit-learn's. It is no cross-entropy with a penalty. A soft target gives the expected score of a hard "
            "label: the squared distance to it plus sum_k q_k (1 - q_k), which has no gradient."
        ),
        masked=True,
    )
    limits = ()

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        distance = (softmax(z) - one_hot(z, y)).square().sum(1)
        return distance + (y * (1 - y)).sum(1) if y.is_floating_point() else distance

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        p = softmax(z)
        error = p - one_hot(z, y)
        return error - 2 * p * (error - (p * error).sum(1, keepdim=True))
