"""Brier: the mean squared error of the class probabilities, and what it is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from confide.core.bins import Histogram, check_bins
from confide.core.stats import ONE, Bag, exactly
from confide.core.sums import Mean
from confide.metrics.classes import by_class
from confide.metrics.estimate import Span
from confide.metrics.intervals import mean_span
from confide.metrics.items import Items
from confide.metrics.means import mean_of
from confide.metrics.metric import Metric, Options

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, eq=False, repr=False)
class BrierSums(Bag):
    """The score, and bins of every class; none where no decomposition is asked for."""

    score: Mean
    classes: Histogram


class Brier(Metric[BrierSums]):
    """Mean of the squared distances between probabilities and label, summed over classes: from 0 to 2.

    `Brier(bins=15).parts()` says what it is made of, at the price of one more look at every probability.
    """

    definition = (
        "Mean over items of the sum over classes of (softmax(z)_k - q_k)**2, q the one-hot label or the soft target. "
        "Decomposition, over bins of each class: reliability - resolution + uncertainty + within."
    )
    classwise = True

    def __init__(self, *, bins: int | None = None, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.bin_count = 0 if bins is None else check_bins(bins)

    def settings(self) -> dict[str, Any]:
        return {"bins": self.bin_count or None, **super().settings()}

    def observe(self, items: Items) -> BrierSums:
        classes = by_class(items, self.bin_count) if self.bin_count else self.blank(items.classes).classes
        return BrierSums(Mean.of(squared_error(items), items.keep, items.weight), classes.to(items.x.device))

    def value(self, stats: BrierSums) -> float:
        return mean_of(stats.score)

    def blank(self, classes: int) -> BrierSums:
        return BrierSums(Mean.blank(), Histogram.blank(classes, self.bin_count))

    def span(self, stats: BrierSums, clusters: list[BrierSums]) -> Span:
        return mean_span(stats.score, [part.score for part in clusters])

    def parts(self) -> dict[str, float]:
        """Reliability - resolution + uncertainty + within = the score.

        `within` is what differs inside bins (their variance less twice their covariance with the label); Murphy's
        three terms are exact only where all predictions of a bin are equal.
        """
        if not self.bin_count or self.stats is None:
            return {}
        three = {"reliability": 0.0, "resolution": 0.0, "uncertainty": 0.0}
        bins = self.stats.classes
        sums = zip(
            *(_by_row(part.units(), self.bin_count) for part in (bins.mass, bins.hits, bins.confidence)), strict=True
        )
        for mass, hits, confidence in sums:
            for name, part in zip(three, _murphy(mass, hits, confidence), strict=True):
                three[name] += part
        rest = three["reliability"] - three["resolution"] + three["uncertainty"]
        return {**three, "within": self.value(self.stats) - rest}


def squared_error(items: Items) -> Tensor:
    """The Brier score of every row."""
    p, q = items.p, items.soft
    squares = exactly(items.over_classes(p * p))
    if q is None:
        return squares - 2 * exactly(items.at(p, items.y.clamp(min=0))) + 1
    return squares - 2 * exactly(items.over_classes(p * q)) + exactly(items.over_classes(q * q))


def _by_row(units: list[int], width: int) -> list[list[int]]:
    return [units[i : i + width] for i in range(0, len(units), width)]


def _murphy(mass: list[int], hits: list[int], confidence: list[int]) -> tuple[float, float, float]:
    """Reliability, resolution and uncertainty of one class."""
    total = sum(mass) / ONE
    if not total:
        return math.nan, math.nan, math.nan
    base = sum(hits) / ONE / total
    full = [(m / ONE, h / m, c / m) for m, h, c in zip(mass, hits, confidence, strict=True) if m]
    reliability = math.fsum(m * (c - a) ** 2 for m, a, c in full) / total
    resolution = math.fsum(m * (a - base) ** 2 for m, a, _ in full) / total
    return reliability, resolution, base * (1 - base)
