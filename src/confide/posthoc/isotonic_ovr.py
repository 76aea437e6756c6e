"""Isotonic regression for each class against the rest."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values
from confide.posthoc.one_vs_rest import follow, isotonic, labels, missing, pack


@dataclass(eq=False, kw_only=True)
class IsotonicOVR(Calibrator):
    """An increasing curve of p for each class, normalised."""

    card = Card(
        title="Isotonic regression, one versus rest",
        cite="Zadrozny and Elkan, KDD 2002",
        formula="f_k(p_k) / sum_j f_j(p_j), f_k increasing",
        when="curves of unknown shape and thousands of rows a class; ranks within a class stay",
        differs=(
            "scikit-learn and netcal let a curve reach 0 and 1, so that one surprising row makes the NLL infinite, and "
            "Mix-n-Match does not normalise. Here a block of n rows claims no less than 1 / (n + 2) and rows sum to 1."
        ),
        onnx=False,
        extra=True,
    )

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        p, hit = z.double().softmax(1).cpu().numpy(), labels(z, y).cpu().numpy()
        curves = [isotonic(p[:, k], hit[:, k]) for k in range(z.shape[1])]
        return Learnt(pack(curves), note=missing(y, z.shape[1]))

    def map(self, z: Tensor, values: Values) -> Tensor:
        return follow(z.softmax(1), values).log()
