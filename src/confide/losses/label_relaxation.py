"""Label relaxation: any prediction that gives the true class at least 1 - alpha is as good as the label."""

import math

from torch import Tensor, finfo, where

from confide.core.knobs import knob
from confide.core.simplex import expected, expected_shift
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss


class LabelRelaxation(Loss):
    """Divergence from the nearest of all labels that give the true class at least 1 - alpha."""

    alpha: float = knob(default=0.1, low=0, high=0.99, doc="mass that may lie on the other classes")
    card = Card(
        title="Label relaxation",
        cite="Lienen and Huellermeier, AAAI 2021",
        group="adaptive + conditional",
        formula="0 if p_y >= 1 - alpha, else (1 - alpha) log((1 - alpha) / p_y) + alpha log(alpha / (1 - p_y))",
        summary="no gradient at all once the true class has enough",
        differs=(
            "Paper and code agree where both are finite; the legacy code gives NaN gradients where a probability "
            "rounds to 0 or 1, this one does not. It is not cross-entropy plus a penalty: inside the set the whole "
            "gradient is zero. The paper leaves soft targets open; here they give the expected loss of a hard label."
        ),
        masked=True,
    )
    limits = (({"alpha": 0.0}, CrossEntropy()),)

    def loss(self, z: Tensor, y: Tensor) -> Tensor:
        return expected(self._divergence, z, y)

    def shift(self, z: Tensor, y: Tensor) -> Tensor:
        return expected_shift(self._slope, z, y)

    def _divergence(self, log_p: Tensor) -> Tensor:
        enough, a = math.log1p(-self.alpha), self.alpha
        entropy = (1 - a) * enough + (a * math.log(a) if a else 0.0)
        divergence = entropy - (1 - a) * log_p - a * self._others(log_p).log()
        return where(log_p > enough, 0.0, divergence)

    def _slope(self, log_p: Tensor) -> Tensor:
        return where(log_p > math.log1p(-self.alpha), 0.0, 1 - self.alpha / self._others(log_p))

    def _others(self, log_p: Tensor) -> Tensor:
        """1 - p without cancellation, and never 0."""
        return (-log_p.expm1()).clamp(min=finfo(log_p.dtype).tiny)
