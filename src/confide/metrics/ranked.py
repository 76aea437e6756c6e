"""What metrics of ranked confidences share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from confide.metrics.curves import BRIEF as BRIEF
from confide.metrics.equal_mass import Index
from confide.metrics.intervals import Array
from confide.metrics.items import Items
from confide.metrics.ranks import Ranks


def top_ranks(items: Items) -> Ranks:
    """Confidences, and whether the predicted class is right."""
    return Ranks.of(items.confidence, items.hit, items.keep, items.weight)


def cluster_gaps(clusters: Sequence[Ranks], stats: Ranks, place: Index, bins: int) -> list[tuple[Array, Array]]:
    """Of each cluster the weight and the gap in each bin; `place` is the bin of each cell of `stats` with rows."""
    full, held = stats.grid.mass.float().numpy() > 0, place >= 0
    return [
        tuple(np.bincount(place[held], x[full][held], bins) for x in _sums(part))  # type: ignore[misc]
        for part in clusters
    ]


def _sums(part: Ranks) -> tuple[Array, Array]:
    mass, hits, confidence = (x.float().numpy() for x in (part.grid.mass, part.grid.hits, part.grid.confidence))
    return mass, confidence - hits
