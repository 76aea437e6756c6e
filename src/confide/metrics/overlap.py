"""How well predicted and true regions match, class by class, from counts of rows: values and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from confide.core.sums import Tally
from confide.metrics.estimate import Span

Array = NDArray[np.float64]
DRAWS = 1000


def masses(stats: Tally) -> Array:
    """(3, classes): weight of the rows with each class as label, as prediction, as both."""
    return np.stack([part.float().numpy() for part in (stats.label, stats.predicted, stats.both)])


def iou(label: Array, predicted: Array, both: Array) -> Array:
    """Intersection over union; NaN for a class that neither occurs nor is predicted."""
    union = label + predicted - both
    return np.where(union > 0, both / np.where(union > 0, union, 1.0), math.nan)


def dice(label: Array, predicted: Array, both: Array) -> Array:
    """Twice the intersection over the sum of the sizes; NaN for a class that neither occurs nor is predicted."""
    total = label + predicted
    return np.where(total > 0, 2 * both / np.where(total > 0, total, 1.0), math.nan)


def recall(label: Array, predicted: Array, both: Array) -> Array:
    """The share of a class's rows that are predicted as it; NaN for a class that does not occur."""
    return np.where(label > 0, both / np.where(label > 0, label, 1.0), math.nan)


def mean_of_classes(values: Array, skip_background: bool = False) -> Array:
    """The mean over classes that have a value."""
    values = values[..., 1:] if skip_background else values
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(-1)
    return np.where(known.any(-1), total / np.maximum(known.sum(-1), 1), math.nan)


def overlap_span(stats: Tally, clusters: Sequence[Tally], number: Callable[[Array, Array, Array], Array]) -> Span:
    """The bootstrap's interval: of clusters of units, or of rows taken as independent."""
    rng = np.random.default_rng(0)
    if len(clusters) >= 2:
        picks = rng.multinomial(len(clusters), np.full(len(clusters), 1 / len(clusters)), DRAWS)
        drawn = np.tensordot(picks, np.stack([masses(part) for part in clusters]), 1)
        note = ""
    else:
        drawn = _of_rows(stats, rng)
        note = "rows are taken as independent; pixels of an image are not: pass unit="
    low, high = np.nanquantile(number(*drawn.transpose(1, 0, 2)), (0.025, 0.975)) if stats.n() else (math.nan, math.nan)
    return Span(float(low), float(high), note=note)


def _of_rows(stats: Tally, rng: np.random.Generator) -> Array:
    """Counts of data sets of so many rows: of each class the rows that are missed, wrongly given, and right."""
    label, predicted, both = masses(stats)
    n = stats.n()
    scale = n / label.sum() if label.sum() else 0.0
    missed, given, right = (
        rng.poisson(np.maximum(part, 0) * scale, (DRAWS, len(part))) for part in (label - both, predicted - both, both)
    )
    return np.stack((missed + right, given + right, right), 1).astype(float)
