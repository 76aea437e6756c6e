"""Bins that hold equally many rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confide.metrics.intervals import Bars
from confide.metrics.ranks import Steps

Index = NDArray[np.int64]


def together(steps: Steps, bins: int) -> Index:
    """The bin of each step: rows sorted and cut into parts whose sizes differ by one at most; nobody is dropped.

    Equal scores stay together: they go to the bin of the one in their middle.
    """
    total = steps.total
    sizes = np.full(bins, total / bins)
    if total == round(total):
        whole, extra = divmod(round(total), bins)
        sizes = whole + (np.arange(bins) < extra).astype(float)
    middle = np.cumsum(steps.mass) - steps.mass / 2
    return np.minimum(np.searchsorted(np.cumsum(sizes), middle, side="right"), bins - 1)


def released(steps: Steps, bins: int) -> Index:
    """As in the code released with the papers; -1 for rows that fall into no bin.

    Edges are interpolated between the sorted scores, and bins are (a, b]: the smallest score, which is the first edge,
    and all that equal it are dropped.
    """
    rank = np.cumsum(steps.mass)
    places = np.minimum(np.linspace(0, steps.total, bins + 1), steps.total - 1)
    low, high = np.floor(places), np.ceil(places)
    lower, upper = (
        steps.score[np.minimum(np.searchsorted(rank, at, side="right"), len(rank) - 1)] for at in (low, high)
    )
    edges = lower + (upper - lower) * (places - low)
    place = np.searchsorted(edges, steps.score, side="left") - 1
    return np.where((place >= 0) & (place < bins), place, -1)


def bars(steps: Steps, place: Index, bins: int, rows: float) -> Bars:
    """The sums of each bin; `rows` are those that count alike. Shares are of all rows, also of those in no bin."""
    held = place >= 0
    mass, hits, confidence = (
        np.bincount(place[held], x[held], bins).astype(np.float64)
        for x in (steps.mass, steps.hits, steps.mass * steps.score)
    )
    safe = np.where(mass > 0, mass, 1.0)
    count = mass * rows / max(steps.total, 1e-300)
    return Bars(count, mass, hits / safe, confidence / safe, rows, steps.total)


def limits(steps: Steps, place: Index, bins: int) -> list[float]:
    """Edges halfway between the scores of neighbouring bins; those of an empty bin are equal."""
    edges = [0.0]
    for k in range(bins - 1):
        below, above = steps.score[(place <= k) & (place >= 0)], steps.score[place > k]
        edges.append(float((below.max() + above.min()) / 2) if len(below) and len(above) else edges[-1])
    return [*edges, 1.0]
