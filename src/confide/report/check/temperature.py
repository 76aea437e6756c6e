"""What one temperature would do: fitted on one half of a sample of rows and judged on the other, both ways round."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from confide.core.errors import CalibrationWarning
from confide.metrics.ece import ECE
from confide.metrics.regions import region_mask
from confide.posthoc.temperature import Temperature

ROOM = 1 << 23  # numbers kept
LEAST = 100  # rows without which nothing is said
SMALL = 1e-4  # an ECE below which there is nothing to remove


class Sample:
    """Rows with labels, each kept with the same chance, which is so small that all of them fit."""

    def __init__(self, items: int, classes: int, ignore_index: int | None, region: str) -> None:
        self.chance = min(1.0, ROOM / max(items * classes, 1))
        self.ignore_index, self.inside = ignore_index, region_mask(region, ignore_index)
        self.generator = torch.Generator().manual_seed(0)
        self.z: list[Tensor] = []
        self.y: list[Tensor] = []

    def observe(self, scores: Tensor, labels: Tensor) -> None:
        """Scores (n, C, ...) with labels (n, ...)."""
        kept = torch.ones_like(labels, dtype=torch.bool)
        if self.ignore_index is not None:
            kept = labels != self.ignore_index
        if self.inside is not None:
            kept = kept & self.inside(labels)
        if self.chance < 1:
            kept = kept & (torch.rand(labels.shape, generator=self.generator) < self.chance)
        row, place = kept.reshape(len(labels), -1).nonzero(as_tuple=True)
        z = scores if labels.dim() == 1 else scores.flatten(2)
        self.z.append(z[row] if labels.dim() == 1 else z[row, :, place])
        self.y.append(labels[kept])

    def judge(self, inputs: str) -> dict[str, Any] | None:
        """The temperature of all rows, and which share of the ECE the two of the halves remove; None for too few."""
        z, y = torch.cat(self.z), torch.cat(self.y)
        if len(y) < LEAST:
            return None
        half = torch.rand(len(y), generator=torch.Generator().manual_seed(1)) < 0.5
        with warnings.catch_warnings():
            warnings.simplefilter("error", CalibrationWarning)
            try:
                both = [_fitted(z[part], y[part], inputs) for part in (half, ~half)]
                value = _fitted(z, y, inputs).temperature_
            except CalibrationWarning:
                return None
        before, after = ECE(inputs="probs"), ECE(inputs="probs")
        for part, other in ((~half, both[0]), (half, both[1])):
            before.update((z[part] if inputs == "probs" else z[part].float().softmax(1)), y[part])
            after.update(other.predict_proba(z[part]), y[part])
        was, would = before.compute(), after.compute()
        if was < SMALL:
            return None
        return {"value": float(value), "removes": 1 - would / was, "ece_before": was, "ece_after": would, "n": len(y)}


def _fitted(z: Tensor, y: Tensor, inputs: str) -> Temperature:
    return Temperature(from_probs=inputs == "probs").fit(z, y)
