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
        guess = scores.max(1).indices
        wrong = ((guess != truth) & counts).nonzero().squeeze(1)
        odds = _odds(scores[wrong], guess[wrong], inputs)
        best = torch.sort(odds, stable=True).indices[:MOST]
        confidence = 1 / (1 + odds[best].double())
        found = zip(confidence.tolist(), wrong[best].tolist(), strict=True)
        self.kept += [_row(names[i], c, int(truth[i]), int(guess[i])) for c, i in found]
        self.kept = sorted(self.kept, key=lambda row: -row["confidence"])[:MOST]


def _odds(scores: Tensor, guess: Tensor, inputs: str) -> Tensor:
    """The probability of all other classes over that of the predicted one: it still tells apart what rounds to 1."""
    z = scores.float() if scores.element_size() < 4 else scores
    top = z.gather(1, guess[:, None])
    if inputs == "probs":
        return (1 - top.squeeze(1)) / top.squeeze(1)
    return (z - top).exp_().scatter_(1, guess[:, None], 0.0).sum(1)


def _row(name: Any, confidence: float, label: int, predicted: int) -> dict[str, Any]:
    return {
        "row": name.item() if isinstance(name, np.generic) else name,
        "confidence": confidence,
        "label": label,
        "predicted": predicted,
    }
