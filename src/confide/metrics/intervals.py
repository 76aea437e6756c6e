"""95 % intervals from stored sums.

An interval is for what infinitely many rows would show. The plain calibration error of n rows lies above that, since
chance makes gaps larger; so a bootstrap of the plain value misses the truth, always where the truth is 0. Instead the
true gaps of the bins are drawn, given those found and their errors, and the metric of the draws is what the interval
holds. It begins at 0 where a calibrated model would show no less than was found in more than 2.5 % of data sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core.bins import Histogram
from confide.core.sums import Mean
from confide.metrics.estimate import Span

Array = NDArray[np.float64]
Statistic = Callable[[Array, Array, Array], Array]  # (share of each bin, gap in each bin, rows in each bin) -> values
Z = 1.959964  # of a normal distribution, 95 % lie within
STEPS = 10  # halvings of the search for an end
DRAWS, CELLS = 2000, 120_000  # simulated data sets, and numbers drawn for them at once


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
    return Span(*wilson(mean, n, t_quantile(max(freedom, 1))))


def wilson(share: float, n: float, z: float = Z) -> tuple[float, float]:
    """The interval of a proportion of n rows."""
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5 / (1 + z * z / n)
    return max(centre - half, 0.0), min(centre + half, 1.0)


@dataclass(frozen=True)
class Bars:
    """Bins as floating point numbers, (..., bins): rows, their weight, accuracy and mean confidence."""

    count: Array
    mass: Array
    accuracy: Array
    confidence: Array
    rows: float  # equally weighted rows that would be as informative
    total: Array | float | None = None  # the weight of all rows, where some are in no bin

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
        total = np.asarray(self.mass.sum(-1, keepdims=True) if self.total is None else self.total)
        return np.asarray(self.mass / np.where(total > 0, total, 1.0))

    @property
    def gap(self) -> Array:
        return self.confidence - self.accuracy

    def effective(self) -> Array:
        """Rows in each bin, as if all weighed the same."""
        return self.share * self.rows


def bars_span(stats: Histogram, clusters: Sequence[Histogram], statistic: Statistic) -> Span:
    """The interval of a calibration error that is a function of bins."""
    parts = [(part.mass.float().numpy(), (part.confidence.float() - part.hits.float()).numpy()) for part in clusters]
    return gaps_span(Bars.of(stats), parts, statistic)


def gaps_span(bars: Bars, clusters: Sequence[tuple[Array, Array]], statistic: Statistic) -> Span:
    """The same from bins; of each cluster the weight and the gap in each bin, not divided by the weight."""
    if bars.rows < 2 or len(clusters) == 1:
        return Span(note="too few rows or units for an interval")
    rng = np.random.default_rng(0)
    draws = int(np.clip(CELLS // max(bars.mass.size, 1), 200, DRAWS))
    noise = _cluster_noise(bars, clusters, draws, rng) if clusters else _row_noise(bars, draws, rng)
    found = float(statistic(bars.share, bars.gap, bars.count))
    null = statistic(*noise.null)
    truth = statistic(noise.share, _gaps(bars, noise, rng), np.full_like(bars.count, np.inf))
    low, high = np.quantile(truth, (0.025, 0.975))
    low = 0.0 if np.quantile(null, 0.975) >= found else min(low, _least(bars, noise, statistic, found))
    return Span(float(low), float(high), float(null.mean()))


def _least(bars: Bars, noise: _Noise, statistic: Statistic, found: float) -> float:
    """The smallest truth under which the value found is no surprise, if the gaps found shrink together.

    It guards the lower end where few bins are off, which draws around a common gap do not foresee.
    """
    shape = np.sign(bars.gap) * np.sqrt(np.maximum(bars.gap**2 - noise.variance, 0.0))
    below, above = 0.0, 1.0
    for _ in range(STEPS):
        middle = (below + above) / 2
        high = np.quantile(statistic(noise.share, middle * shape + noise.errors[0], bars.count), 0.975)
        below, above = (middle, above) if high < found else (below, middle)
    return float(statistic(bars.share, above * shape, np.full_like(bars.count, np.inf)))


@dataclass(frozen=True)
class _Noise:
    """Simulated data sets: the shares of the bins, errors of their gaps, and all that a calibrated model would show."""

    share: Array
    errors: tuple[Array, Array]  # two draws of the errors, independent of each other
    variance: Array
    null: tuple[Any, Any, Any]


def _row_noise(bars: Bars, draws: int, rng: np.random.Generator) -> _Noise:
    """Of independent rows: how many fall into a bin, and how many of those are correct."""
    n = bars.effective()
    smooth = (bars.accuracy * n + bars.confidence) / (n + 1)
    variance = smooth * (1 - smooth) / np.maximum(n, 1e-9)
    first, second = (rng.standard_normal((draws, *n.shape)) * np.sqrt(variance) for _ in range(2))
    drawn = rng.poisson(n, (draws, *n.shape))
    share = drawn / np.maximum(drawn.sum(-1, keepdims=True), 1)
    hits = rng.binomial(drawn, np.broadcast_to(np.clip(bars.confidence, 0, 1), drawn.shape))
    gap = np.where(drawn > 0, bars.confidence - hits / np.maximum(drawn, 1), 0.0)
    return _Noise(share, (first, second), variance, (share, gap, drawn))


def _cluster_noise(bars: Bars, clusters: Sequence[tuple[Array, Array]], draws: int, rng: np.random.Generator) -> _Noise:
    """Of clusters drawn with replacement, around the gaps found."""
    mass, gaps = (np.stack([part[i] for part in clusters]) for i in (0, 1))
    error = gaps - mass * bars.gap
    safe = np.where(bars.mass > 0, bars.mass, 1.0)
    wider = len(clusters) / (len(clusters) - 1)
    picks = rng.multinomial(len(clusters), np.full(len(clusters), 1 / len(clusters)), (2, draws))
    first, second = (np.tensordot(pick, error, 1) / safe * wider**0.5 for pick in picks)
    drawn = np.tensordot(picks[0], mass, 1)
    share = drawn / np.maximum(drawn.sum(-1, keepdims=True), 1e-300)
    variance = (error**2).sum(0) * wider / safe**2
    return _Noise(share, (first, second), variance, (share, second, np.broadcast_to(bars.count, drawn.shape)))


def _gaps(bars: Bars, noise: _Noise, rng: np.random.Generator) -> Array:
    """Draws of the true gaps, given those found and their errors.

    The true gaps are taken to be spread around a common one, by as much as the gaps found suggest: a model that is
    overconfident everywhere and one that is wrong in both directions show the same plain error at different truths.
    """
    used = bars.mass > 0
    found, variance = bars.gap, np.where(used, np.maximum(noise.variance, 1e-12), np.inf)
    spread = np.linspace(0, 2 * max(float(np.abs(found[used]).max(initial=0)), 1e-6), 60)
    precision = 1 / (variance + spread.reshape(-1, *[1] * found.ndim) ** 2)
    total = precision.reshape(len(spread), -1).sum(1)
    centre = (precision * found).reshape(len(spread), -1).sum(1) / total
    off = (found - centre.reshape(-1, *[1] * found.ndim)) ** 2 * precision
    fit = (np.log(precision, where=used, out=np.zeros_like(precision)) - off).reshape(len(spread), -1).sum(1)
    likely = np.exp((fit - np.log(total) - (fit - np.log(total)).max()) / 2)
    picked = rng.choice(len(spread), len(noise.share), p=likely / likely.sum())
    tau2 = (spread[picked] ** 2).reshape(-1, *[1] * found.ndim)
    weight = precision[picked] / total[picked].reshape(tau2.shape)
    axes = tuple(range(1, weight.ndim))
    wobble = (weight * (found + noise.errors[0])).sum(axes) + np.sqrt((weight**2).sum(axes) * tau2.reshape(-1)) * (
        rng.standard_normal(len(picked))
    )
    kept = np.where(used, tau2 / (tau2 + variance), 0.0)
    common = wobble.reshape(tau2.shape)
    return np.asarray(common + kept * (found - common) + np.sqrt(kept) * noise.errors[1])
