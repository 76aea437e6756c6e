"""95 % intervals from stored sums.

The interval of a calibration error is found by inverting a test. The plain error of n rows lies above the error that
infinitely many rows would show, by an amount that depends on that error; so a bootstrap of the plain value misses the
truth, always where the truth is 0. Instead models of every error from 0 up are simulated, with the gaps of the bins
found here, made smaller or larger together; the interval holds the errors under which the value found is no surprise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core.bins import Histogram
from confide.core.stats import Mean
from confide.metrics.estimate import Span

Array = NDArray[np.float64]
Statistic = Callable[[Array, Array, Array], Array]  # (share of each bin, gap in each bin, rows in each bin) -> values
Z = 1.959964  # of a normal distribution, 95 % lie within
DRAWS, CELLS = 1000, 60_000  # simulated data sets, and numbers drawn for them at once
STEPS = 14  # halvings of the search for an end


def t_quantile(freedom: float) -> float:
    """Of Student's t, 95 % lie within (to 0.1 % from 4 degrees of freedom on)."""
    if freedom < 1:
        return float("inf")
    z = Z
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return float(z + first / freedom + second / freedom**2 + third / freedom**3)


def moments(stats: Mean, clusters: Sequence[Mean]) -> tuple[float, float, float]:
    """Mean, its variance, and the degrees of freedom of that; by clusters of units where there are any."""
    w, wx, w2, w2x, w2x2 = stats.sums.float().tolist()
    if w <= 0 or int(stats.wild.sum()):
        return float("nan"), float("nan"), 0.0
    mean = wx / w
    if clusters:
        sums = np.array([part.sums.float()[:2].tolist() for part in clusters])
        groups = len(sums)
        spread = ((sums[:, 1] - mean * sums[:, 0]) ** 2).sum() * groups / max(groups - 1, 1)
        return mean, float(spread) / w**2, groups - 1
    freedom = w * w / w2 - 1
    spread = max(w2x2 - 2 * mean * w2x + mean * mean * w2, 0.0)
    return mean, spread / w**2 * (freedom + 1) / max(freedom, 1e-9), freedom


def mean_span(stats: Mean, clusters: Sequence[Mean]) -> Span:
    """The interval of a mean."""
    mean, variance, freedom = moments(stats, clusters)
    half = t_quantile(freedom) * variance**0.5 if freedom >= 1 else float("nan")
    return Span(mean - half, mean + half)


def share_span(stats: Mean, clusters: Sequence[Mean]) -> Span:
    """The interval of a proportion after Wilson, which holds near 0 and 1 as well."""
    mean, variance, freedom = moments(stats, clusters)
    w, w2 = (float(stats.sums.float()[i]) for i in (0, 2))
    if not w > 0:
        return Span()
    n = mean * (1 - mean) / variance if variance > 0 else w * w / w2
    z2 = t_quantile(max(freedom, 1)) ** 2
    centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
    half = (z2 * (mean * (1 - mean) / n + z2 / (4 * n * n))) ** 0.5 / (1 + z2 / n)
    return Span(max(centre - half, 0.0), min(centre + half, 1.0))


@dataclass(frozen=True)
class Bars:
    """Bins as floating point numbers, (..., bins): rows, their weight, accuracy and mean confidence."""

    count: Array
    mass: Array
    accuracy: Array
    confidence: Array
    rows: float  # equally weighted rows that would be as informative

    @classmethod
    def of(cls, stats: Histogram) -> Bars:
        mass, hits, confidence = (part.float().numpy() for part in (stats.mass, stats.hits, stats.confidence))
        safe = np.where(mass > 0, mass, 1.0)
        total, square = mass.sum(), float(stats.square.float())
        lead = max(1, int(np.prod(mass.shape[:-1])))
        rows = (total / lead) ** 2 / square if square else 0.0
        return cls(stats.count.cpu().numpy().astype(float), mass, hits / safe, confidence / safe, rows)

    @property
    def share(self) -> Array:
        """The weight of each bin, a fraction of all."""
        total = self.mass.sum(-1, keepdims=True)
        return np.asarray(self.mass / np.where(total > 0, total, 1.0))

    @property
    def gap(self) -> Array:
        return self.confidence - self.accuracy

    def effective(self) -> Array:
        """Rows in each bin, as if all weighed the same."""
        return self.share * self.rows


def bars_span(stats: Histogram, clusters: Sequence[Histogram], statistic: Statistic) -> Span:
    """The interval of a calibration error that is a function of bins."""
    bars = Bars.of(stats)
    if bars.rows < 2 or len(clusters) == 1:
        return Span(note="too few rows or units for an interval")
    draw = _cluster_draw(bars, clusters) if clusters else _row_draw(bars)
    found = float(statistic(bars.share[None], bars.gap[None], bars.count[None])[0])
    shape = _shape(bars)

    def simulated(size: float) -> Array:
        return statistic(*draw(size * shape))

    def truth(size: float) -> float:
        true = bars.confidence - np.clip(bars.confidence - size * shape, 0, 1)
        many = np.full_like(bars.count, 1e15)
        return float(statistic(bars.share[None], true[None], many[None])[0])

    null = simulated(0.0)
    low = 0.0 if np.quantile(null, 0.975) >= found else truth(_invert(simulated, 0.975, found))
    high = truth(_invert(simulated, 0.025, found))
    return Span(low, max(high, low), float(null.mean()))


def _invert(simulated: Callable[[float], Array], level: float, found: float) -> float:
    """How large the gaps must be for the value found to be that quantile."""
    below, above = 0.0, 1.0
    while np.quantile(simulated(above), level) < found and above < 64:
        below, above = above, above * 2
    for _ in range(STEPS):
        middle = (below + above) / 2
        below, above = (middle, above) if np.quantile(simulated(middle), level) < found else (below, middle)
    return (below + above) / 2


def _shape(bars: Bars) -> Array:
    """The gaps, without what noise alone adds to their size."""
    n = np.maximum(bars.effective(), 1e-9)
    smooth = (bars.accuracy * n + bars.confidence) / (n + 1)
    noise = smooth * (1 - smooth) / n
    kept = np.sign(bars.gap) * np.sqrt(np.maximum(bars.gap**2 - noise, 0.0))
    return kept if (bars.share * np.abs(kept)).sum() > 0.1 * (bars.share * np.abs(bars.gap)).sum() else bars.gap


def _row_draw(bars: Bars) -> Callable[[Array], tuple[Any, Any, Any]]:
    """Data sets of independent rows: how many fall into a bin, and how many of those are correct."""
    effective = bars.effective()
    draws = int(np.clip(CELLS // max(effective.size, 1), 100, DRAWS))

    def draw(gap: Array) -> tuple[Any, Any, Any]:
        rng = np.random.default_rng(0)
        n = rng.poisson(effective, (draws, *effective.shape))
        accuracy = np.clip(bars.confidence - gap, 0, 1)
        hits = rng.binomial(n, np.broadcast_to(accuracy, n.shape))
        share = n / np.maximum(n.sum(-1, keepdims=True), 1)
        return share, np.where(n > 0, bars.confidence - hits / np.maximum(n, 1), 0.0), n

    return draw


def _cluster_draw(bars: Bars, clusters: Sequence[Histogram]) -> Callable[[Array], tuple[Any, Any, Any]]:
    """Data sets of clusters drawn with replacement: their noise, around gaps of our choice."""
    mass = np.stack([part.mass.float().numpy() for part in clusters])
    gaps = np.stack([(part.confidence.float() - part.hits.float()).numpy() for part in clusters])
    draws = int(np.clip(CELLS * 20 // mass[0].size, 100, DRAWS))
    times = np.random.default_rng(0).multinomial(len(clusters), np.full(len(clusters), 1 / len(clusters)), draws)
    drawn = np.tensordot(times, mass, 1)
    noise = np.tensordot(times, gaps, 1) - drawn * bars.gap
    safe = np.where(drawn > 0, drawn, 1.0)
    share = drawn / np.maximum(drawn.sum(-1, keepdims=True), 1e-300)

    def draw(gap: Array) -> tuple[Any, Any, Any]:
        return share, np.where(drawn > 0, gap + noise / safe, 0.0), np.broadcast_to(bars.count, drawn.shape)

    return draw
