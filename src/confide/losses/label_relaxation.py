"""Label relaxation: any prediction that gives the true class at least 1 - alpha is as good as the label."""

from torch import Tensor, finfo, where, xlogy

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
        a, enough = self._relaxed(log_p)
        divergence = (1 - a) * (enough - log_p) + xlogy(a, a) - a * self._others(log_p).log()
        return where(log_p > enough, 0.0, divergence)

    def _slope(self, log_p: Tensor) -> Tensor:
        a, enough = self._relaxed(log_p)
        return where(log_p > enough, 0.0, 1 - a / self._others(log_p))

    def _relaxed(self, log_p: Tensor) -> tuple[Tensor, Tensor]:
        """alpha and log(1 - alpha), as tensors: of numbers the compiler would make constants, one function for each."""
        a = log_p.new_full((), self.alpha)
        return a, (-a).log1p()

    def _others(self, log_p: Tensor) -> Tensor:
        """1 - p without cancellation, and never 0."""
        return (-log_p.expm1()).clamp(min=finfo(log_p.dtype).tiny)
