"""The surest errors: which rows the network got wrong while it was most confident."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MOST = 20


class Misses:
    """Keeps the MOST errors of highest confidence; of equal ones the first."""

    def __init__(self, ignore_index: int) -> None:
        self.ignore_index = ignore_index
        self.kept: list[dict[str, Any]] = []

    def observe(self, scores: Tensor, labels: Tensor, names: NDArray[Any], inputs: str) -> None:
        """Rows (n, C) with labels (n,), or (n, C) if soft; each has a name."""
        truth = labels.argmax(1) if labels.is_floating_point() else labels
        counts = labels.sum(1) > 0 if labels.is_floating_point() else labels != self.ignore_index
        peak, own = scores.amax(1), scores.gather(1, truth.clamp(0, scores.shape[1] - 1)[:, None])[:, 0]
        wrong = ((own != peak) & counts).nonzero().squeeze(1)
        odds, wrong = _odds(scores, peak, wrong, inputs)
        best = torch.sort(odds, stable=True).indices[:MOST]
        for odd, row in zip(odds[best].tolist(), wrong[best].tolist(), strict=True):
            self.kept.append(_row(names[row], 1 / (1 + odd), int(truth[row]), int(scores[row].argmax())))
        self.kept = sorted(self.kept, key=lambda row: -row["confidence"])[:MOST]


def _odds(scores: Tensor, peak: Tensor, rows: Tensor, inputs: str) -> tuple[Tensor, Tensor]:
    """The probability of all other classes over that of the predicted one, and the rows it is of, the surest at least.

    It tells apart what rounds to a confidence of 1; so fine a sum is only made where a plain one says that it matters.
    """
    if inputs == "probs" or not len(rows):
        top = peak[rows].double()
        return (1 - top) / top, rows
    z = scores[rows].float() if scores.element_size() < 4 else scores[rows]
    z = z - peak[rows, None].to(z.dtype)
    rough = z.float().exp().sum(1)
    limit = rough.kthvalue(min(MOST, len(rows))).values * (1 + 1e-5)
    near = rough <= limit
    return z[near].double().exp_().sum(1) - 1, rows[near]


def _row(name: Any, confidence: float, label: int, predicted: int) -> dict[str, Any]:
    return {
        "row": name.item() if isinstance(name, np.generic) else name,
        "confidence": confidence,
        "label": label,
        "predicted": predicted,
    }
