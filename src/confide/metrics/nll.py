"""NLL: the mean negative log-likelihood of the labels, in nats."""

from __future__ import annotations

from torch import Tensor

from confide.core.stats import ONE, Sum
from confide.metrics.metric import Metric
from confide.metrics.readings import nll


class NLL(Metric[Sum]):
    """Mean of -log p of the label. Infinite when a label has probability 0 (or a row's loss reaches 2**26)."""

    definition = "Mean negative log-likelihood of the labels in nats: mean of -log softmax(z)_y."

    def observe(self, z: Tensor, y: Tensor) -> Sum:
        return Sum.of(nll(z, y), keep=y >= 0)

    def value(self, stats: Sum) -> float:
        count = int(stats.count)
        if not count:
            return float("nan")
        return float("inf") if int(stats.unbounded) else stats.total.units()[0] / (count * ONE)
