"""ThresholdedACE: the classwise error over bins of equally many rows, of probabilities above a threshold only."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from confide.core.bins import Histogram, check_bins
from confide.core.errors import KnobError
from confide.core.stats import Fixed, exactly
from confide.metrics.equal_mass import bars, together
from confide.metrics.estimate import Span
from confide.metrics.intervals import Bars, gaps_span
from confide.metrics.items import Items
from confide.metrics.metric import Metric, Options
from confide.metrics.norms import class_mean
from confide.metrics.ranks import Ranks

if TYPE_CHECKING:
    from typing_extensions import Unpack

CELLS = 300  # of every class, once there are too many probabilities to keep


class ThresholdedACE(Metric[Ranks]):
    """Classwise calibration error over bins of equally many probabilities, leaving out those up to a threshold.

    Most probabilities of a model with many classes are next to 0 and would fill most bins. `threshold=0` is the plain
    adaptive error (ACE). Exact up to 65,536 probabilities above the threshold; beyond, those of a class within one of
    300 cells count as equal.
    """

    definition = (
        "TACE (Nixon et al. 2019): mean over all C classes of sum_b m_kb / m_k * |frequency_kb - probability_kb| over "
        "B bins of equally many of the m_k items with softmax(z)_k > threshold; 0 for a class without any."
    )
    classwise = True

    def __init__(self, *, bins: int = 15, threshold: float = 0.01, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        if not 0 <= threshold < 1:
            raise KnobError(f"threshold must lie in [0, 1), got {threshold}")
        self.bin_count, self.threshold = check_bins(bins), threshold

    def settings(self) -> dict[str, Any]:
        return {"bins": self.bin_count, "threshold": self.threshold, **super().settings()}

    def observe(self, items: Items) -> Ranks:
        p = items.p if items.axis == 1 else items.p.t()
        row, k = torch.nonzero((p > self.threshold) & items.keep[:, None], as_tuple=True)
        score = exactly(p[row, k])
        soft = items.soft if items.soft is None or items.axis == 1 else items.soft.t()
        target = items.y[row] == k if soft is None else soft[row, k]
        weight = torch.ones_like(exactly(items.confidence)) if items.weight is None else exactly(items.weight)
        rows = Fixed.total(torch.where(items.keep, weight * weight, 0.0))
        return Ranks.by_class(k, score, exactly(target), weight[row], (items.classes, CELLS), rows)

    def brief(self, stats: Ranks) -> Ranks:
        return self.blank(0)

    def value(self, stats: Ranks) -> float:
        if not stats.n():
            return float("nan")
        found = self._bars(stats)
        return float(class_mean(found.share, found.gap, found.count))

    def blank(self, classes: int) -> Ranks:
        return Ranks(Histogram.blank(classes, CELLS), torch.zeros((3, 0), dtype=torch.int64))

    def span(self, stats: Ranks, clusters: list[Ranks]) -> Span:
        span = gaps_span(self._bars(stats), [], class_mean)
        return dataclasses.replace(span, note="rows are taken as independent: this metric makes no use of unit=")

    def _bars(self, stats: Ranks) -> Bars:
        parts = [bars(steps, together(steps, self.bin_count), self.bin_count, 0.0) for steps in stats.steps_by_class()]
        names = ("mass", "accuracy", "confidence")
        mass, accuracy, confidence = (np.stack([getattr(part, name) for part in parts]) for name in names)
        return Bars(mass, mass, accuracy, confidence, float(mass.sum(-1).mean()))
