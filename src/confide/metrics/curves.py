"""Numbers of ranked scores: how well a score tells correct rows from errors. Equal scores count as drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from confide.metrics.estimate import Span
from confide.metrics.ranks import Array, Ranks, Steps, steps_of

DRAWS = 400
BRIEF = 240  # cells of the grid that a cluster keeps


def auroc(steps: Steps) -> float:
    """The chance that a correct row has a larger score than an error; equal scores count half."""
    wrong = steps.mass - steps.hits
    pairs = steps.hits.sum() * wrong.sum()
    below = np.cumsum(wrong) - wrong
    return float((steps.hits * (below + wrong / 2)).sum() / pairs) if pairs else math.nan


def average_precision(steps: Steps) -> float:
    """The mean, over correct rows, of the share of correct ones among the rows with at least their score."""
    hits, mass = steps.hits[::-1], steps.mass[::-1]
    total = hits.sum()
    return float((hits * np.cumsum(hits) / np.cumsum(mass)).sum() / total) if total else math.nan


def false_positive_rate(steps: Steps, recall: float, closest: bool) -> float:
    """The share of errors at or above the threshold that keeps so many correct rows: at least, or as near as may be."""
    hits, wrong = np.cumsum(steps.hits[::-1]), np.cumsum((steps.mass - steps.hits)[::-1])
    if not len(hits) or not hits[-1] > 0 or not wrong[-1] > 0:
        return math.nan
    kept, taken = np.append(0.0, hits / hits[-1]), np.append(0.0, wrong / wrong[-1])
    at = np.argmin(np.abs(kept - recall)) if closest else np.searchsorted(kept, recall - 1e-12)
    return float(taken[min(int(at), len(taken) - 1)])


def risk_curve(steps: Steps) -> tuple[Array, Array]:
    """Coverage and error rate when rows are kept from the surest on, at every distinct score."""
    mass, wrong = np.cumsum(steps.mass[::-1]), np.cumsum((steps.mass - steps.hits)[::-1])
    return mass / max(steps.total, 1e-300), wrong / np.where(mass > 0, mass, 1.0)


def aurc(steps: Steps) -> float:
    """The mean over all coverages 1/n, 2/n, ..., 1 of the error rate among the rows kept.

    Rows with equal scores are kept in random order: the mean over all orders. With weights that are no whole numbers
    the sum becomes an integral.
    """
    if not steps.total:
        return math.nan
    mass, wrong = steps.mass[::-1], (steps.mass - steps.hits)[::-1]
    before, errors = np.cumsum(mass) - mass, np.cumsum(wrong) - wrong
    rate = wrong / mass
    excess = errors - rate * before
    whole = bool((mass == np.round(mass)).all())
    log = (
        _harmonic(before + mass) - _harmonic(before) if whole else np.log((before + mass) / np.maximum(before, 1e-300))
    )
    return float((rate * mass + np.where(before > 0, excess * log, 0.0)).sum() / steps.total)


def best_aurc(steps: Steps) -> float:
    """The AURC of these rows in the best order, in the limit of many: r + (1 - r) log(1 - r), r the error rate."""
    r = 1 - steps.hits.sum() / steps.total if steps.total else math.nan
    return float(r + (1 - r) * math.log(1 - r)) if r < 1 else float(r)


def _harmonic(n: Array) -> NDArray[np.float64]:
    """1 + 1/2 + ... + 1/n."""
    far = np.maximum(n, 8.0)
    tail = (
        np.log(far) + 0.5772156649015329 + 1 / (2 * far) - 1 / (12 * far**2) + 1 / (120 * far**4) - 1 / (252 * far**6)
    )
    near = np.array([sum(1 / k for k in range(1, m + 1)) for m in range(9)])[np.minimum(n, 8).astype(int)]
    return np.asarray(np.where(n > 8, tail, near))


def rank_span(stats: Ranks, clusters: Sequence[Ranks], number: Callable[[Steps], float]) -> Span:
    """The bootstrap's interval. Its spread is taken from the grid, its place from the value."""
    value = number(stats.steps())
    if math.isnan(value) or len(clusters) == 1:
        return Span()
    rng = np.random.default_rng(0)
    masses, center = _of_clusters(clusters, rng) if clusters else _of_rows(stats, rng)
    values = [number(Steps(center, mass, hits, True)) for mass, hits in masses]
    middle = number(_pooled(clusters) if clusters else steps_of(stats.grid))
    low, high = np.nanquantile(values, (0.025, 0.975)) - middle
    note = "" if not stats.steps().coarse else "scores within 1/7200 of each other count as equal"
    return Span(max(value + float(low), 0.0), min(value + float(high), 1.0), note=note)


def _of_rows(stats: Ranks, rng: np.random.Generator) -> tuple[list[tuple[Array, Array]], Array]:
    steps = steps_of(stats.grid)
    scale = stats.n() / max(steps.total, 1e-300)
    hits = rng.poisson(steps.hits * scale, (DRAWS, len(steps.mass)))
    wrong = rng.poisson(np.maximum(steps.mass - steps.hits, 0) * scale, hits.shape)
    return [(h + w + 1e-12, h.astype(float)) for h, w in zip(hits, wrong, strict=True)], steps.score


def _of_clusters(clusters: Sequence[Ranks], rng: np.random.Generator) -> tuple[list[tuple[Array, Array]], Array]:
    full = _pooled(clusters)
    mass, hits = (
        np.stack([getattr(part.grid, name).float().numpy() for part in clusters]) for name in ("mass", "hits")
    )
    used = mass.sum(0) > 0
    picks = rng.multinomial(len(clusters), np.full(len(clusters), 1 / len(clusters)), DRAWS)
    drawn = [(pick @ mass[:, used] + 1e-12, pick @ hits[:, used]) for pick in picks]
    return drawn, full.score


def _pooled(clusters: Sequence[Ranks]) -> Steps:
    grid = clusters[0].grid
    for part in clusters[1:]:
        grid = grid + part.grid
    return steps_of(grid)
