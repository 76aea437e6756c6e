"""What metrics of ranked confidences share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from confide.metrics.curves import BRIEF as BRIEF
from confide.metrics.intervals import Array, Bars
from confide.metrics.items import Items
from confide.metrics.ranks import Ranks


def top_ranks(items: Items) -> Ranks:
    """Confidences, and whether the predicted class is right."""
    return Ranks.of(items.confidence, items.hit, items.keep, items.weight)


def cluster_gaps(clusters: Sequence[Ranks], bars: Bars) -> list[tuple[Array, Array]]:
    """Of each cluster the weight and the gap in bins of equal mass; a cell goes to the bin nearest to its middle."""
    if not clusters:
        return []
    full = np.flatnonzero(bars.mass > 0)
    centres = bars.confidence[full]
    cells = (np.arange(BRIEF) + 0.5) / BRIEF
    near = full[np.searchsorted((centres[:-1] + centres[1:]) / 2, cells)]
    return [
        tuple(np.bincount(near, x, len(bars.mass)) for x in _sums(part))  # type: ignore[misc]
        for part in clusters
    ]


def _sums(part: Ranks) -> tuple[Array, Array]:
    mass, hits, confidence = (x.float().numpy() for x in (part.grid.mass, part.grid.hits, part.grid.confidence))
    return mass, confidence - hits
