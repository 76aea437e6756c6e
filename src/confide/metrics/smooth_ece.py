"""SmoothECE: the calibration error smoothed by a kernel whose width is the error itself."""

from __future__ import annotations

import numpy as np

from confide.core.bins import CELLS, Histogram
from confide.metrics.estimate import Span
from confide.metrics.intervals import Array, Bars, bars_span
from confide.metrics.items import Items
from confide.metrics.metric import Metric
from confide.metrics.ranks import steps_of

POINTS = 4001  # of the mesh on [0, 1]
LEAST = 1e-3  # the narrowest kernel
HALVINGS = 10  # of the search for the width, as in the authors' code
COARSE, WIDTHS = 20, 20  # cells and kernel widths of the interval


class SmoothECE(Metric[Histogram]):
    """The mean absolute gap between confidence and accuracy after smoothing both along the confidence. Needs no bins.

    The kernel is a Gaussian, reflected at 0 and 1, and as wide as the error that it finds. Computed from 7200 cells,
    each at the mean of its confidences, which are 7 times finer than the narrowest kernel.
    """

    definition = (
        "smECE of the top label (Blasiok and Nakkiran 2023): the integral over t in [0, 1] of "
        "|mean of K_s(t, confidence) (confidence - correct)|, K_s a reflected Gaussian of width s, at the s that the "
        "result equals."
    )

    def observe(self, items: Items) -> Histogram:
        return Histogram.of(items.confidence, items.hit, items.keep, items.weight)

    def brief(self, stats: Histogram) -> Histogram:
        return stats.fold(COARSE)

    def value(self, stats: Histogram) -> float:
        steps = steps_of(stats)
        if not steps.total:
            return float("nan")
        spectrum = _spectrum(steps.score, (steps.mass * steps.score - steps.hits) / steps.total)
        low, high = 0.0, 1.0
        for _ in range(HALVINGS if smoothed(spectrum, 1.0) <= 1.0 else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if middle < max(LEAST, smoothed(spectrum, middle)) else (low, middle)
        return smoothed(spectrum, high)

    def blank(self, classes: int) -> Histogram:
        return Histogram.blank(CELLS)

    def span(self, stats: Histogram, clusters: list[Histogram]) -> Span:
        few, coarse = stats.fold(COARSE), _Coarse()
        bars = Bars.of(few)
        near = float(coarse(bars.share, bars.gap, bars.count))
        scale = self.value(stats) / near if near > 0 else 1.0  # what coarse cells and widths make of it
        return bars_span(few, clusters, lambda *draws: scale * coarse(*draws))


def _spectrum(place: Array, gap: Array) -> Array:
    """The gaps on a mesh, mirrored at both ends, as cosines: in them a Gaussian is one factor each."""
    at = place * (POINTS - 1)
    left = np.minimum(at.astype(np.int64), POINTS - 2)
    part = at - left
    mesh = np.bincount(left, (1 - part) * gap, POINTS) + np.bincount(left + 1, part * gap, POINTS)
    mesh[[0, -1]] *= 2  # what lies on a mirror is seen twice
    return np.asarray(np.fft.rfft(np.concatenate((mesh, mesh[-2:0:-1]))).real)


def smoothed(spectrum: Array, width: float) -> float:
    """The integral of the absolute gap after smoothing."""
    damped = spectrum * np.exp(-2 * (np.pi * width * np.arange(len(spectrum)) / 2) ** 2)
    density = np.abs(np.fft.irfft(damped, 2 * (POINTS - 1))[:POINTS])
    return float(density.sum() - (density[0] + density[-1]) / 2)


class _Coarse:
    """The same for many data sets at once: on 20 cells, at a few widths, between which it interpolates."""

    def __init__(self) -> None:
        self.widths = np.geomspace(2e-3, 1.0, WIDTHS)
        waves = np.arange(2 * COARSE)
        cosine = np.cos(np.pi * np.outer(waves, (np.arange(COARSE) + 0.5) / COARSE))
        factor = np.exp(-2 * (np.pi * self.widths[:, None] * waves / 2) ** 2) * np.where(waves > 0, 2, 1)
        self.kernels = np.einsum("wk,km,kp->wmp", factor, cosine, cosine) / COARSE

    def __call__(self, share: Array, gap: Array, count: Array) -> Array:
        found = np.abs((share * gap) @ self.kernels).sum(-1)
        found = found.reshape(WIDTHS, -1)
        above = found - self.widths[:, None]
        at = np.argmax(above <= 0, axis=0)
        before, each = np.maximum(at - 1, 0), np.arange(found.shape[1])
        drop = above[before, each] - above[at, each]
        part = np.where(drop > 0, above[before, each] / np.where(drop > 0, drop, 1.0), 1.0)
        value = found[before, each] + part * (found[at, each] - found[before, each])
        return np.asarray(value.reshape(gap.shape[:-1]))
