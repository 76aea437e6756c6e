"""Multi-class isotonic regression (IRM): one increasing curve for the probabilities of all classes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values
from confide.posthoc.one_vs_rest import interpolate, isotonic, labels

TIE = 1e-9  # what keeps the curve strictly increasing


@dataclass(eq=False, kw_only=True)
class IsotonicMulti(Calibrator):
    """One increasing curve of p for all classes, normalised."""

    card = Card(
        title="Multi-class isotonic regression (IRM)",
        cite="Zhang, Kailkhura and Han (Mix-n-Match), ICML 2020",
        formula="f(p_k) / sum_j f(p_j), f increasing",
        when="many classes and too few rows for a curve each; keeps the predicted class",
        differs=(
            "The released code adds 1e-9 p to break ties, as here, and does not normalise: its rows sum to anything. "
            "Here they sum to 1, and a block of n pairs claims no less than 1 / (n + 2)."
        ),
        keeps_argmax=True,
        onnx=False,
        extra=True,
    )

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        p = z.double().softmax(1)
        x, value = isotonic(p.cpu().numpy().reshape(-1), labels(z, y).cpu().numpy().reshape(-1))
        return Learnt({"x": p.new_tensor(x), "value": p.new_tensor(value)})

    def map(self, z: Tensor, values: Values) -> Tensor:
        p = z.softmax(1)
        return (interpolate(p, values["x"].to(z.dtype), values["value"].to(z.dtype)) + TIE * p).log()
