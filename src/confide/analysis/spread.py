"""Logit distances: how far below the largest logit of its row each other logit lies (MbLS, Eq. 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from confide.core.simplex import predicted, top

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
BINS = 20


class Histogram(NamedTuple):
    """`counts[i]` numbers lie between `edges[i]` and `edges[i + 1]`."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, values: Tensor, low: float, high: float, bins: int = BINS) -> Histogram:
        """Count values in equal bins; those outside go to the first or the last."""
        width = (high - low) / bins or 1.0
        cell = ((values - low) / width).floor().clamp(0, bins - 1).long()
        counts = torch.bincount(cell, minlength=bins).tolist()
        return cls(tuple(low + width * i for i in range(bins + 1)), tuple(counts))


@dataclass(frozen=True)
class Distances:
    """The distances of all classes but the predicted one, in all kept rows. Classes masked with -inf have none."""

    count: int
    quantiles: dict[float, float]  # by level, at LEVELS; empty without any distance
    histogram: Histogram
    margin: float | None  # of the loss, if it has one
    beyond: float | None  # share of the distances that exceed it

    def at(self, level: float) -> float:
        """A quantile at one of LEVELS, NaN without any distance."""
        return self.quantiles.get(level, math.nan)


def distances(z: Tensor, keep: Tensor, margin: float | None = None) -> Distances:
    """Of canonical logits, with the classes on axis 1, and a mask of the rows that count."""
    found = pool(z, keep)
    high = found.max().item() if len(found) else 0.0
    return Distances(
        count=len(found),
        quantiles=dict(zip(LEVELS, quantiles(found, LEVELS), strict=False)),
        histogram=Histogram.of(found, 0.0, high),
        margin=margin,
        beyond=None if margin is None else share(found > margin),
    )


def pool(z: Tensor, keep: Tensor) -> Tensor:
    """All distances in one row, as they come."""
    gaps = top(z) - z
    return gaps[~predicted(z) & keep.unsqueeze(1) & gaps.isfinite()]


def quantiles(values: Tensor, levels: tuple[float, ...]) -> list[float]:
    """The values at these levels of the sorted ones, the nearest where none is exactly there."""
    # Not torch.quantile, which refuses more than 16 million numbers.
    ordered = values.sort().values
    return [ordered[round(level * (len(ordered) - 1))].item() for level in levels] if len(ordered) else []


def share(mask: Tensor) -> float:
    """How much of a mask is set; NaN of nothing."""
    return mask.sum().item() / mask.numel() if mask.numel() else math.nan
