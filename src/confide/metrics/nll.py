"""NLL: the mean negative log-likelihood of the labels, in nats."""

from __future__ import annotations

from confide.core.sums import Mean
from confide.metrics.estimate import Span
from confide.metrics.intervals import mean_span
from confide.metrics.items import Items
from confide.metrics.means import mean_of
from confide.metrics.metric import Metric


class NLL(Metric[Mean]):
    """Mean of -log p of the label. Infinite when a label has probability 0 (or a row's loss reaches 2**26)."""

    definition = (
        "Mean negative log-likelihood of the labels in nats: mean of -log softmax(z)_y, "
        "under a soft target q of -sum_k q_k log softmax(z)_k."
    )

    def observe(self, items: Items) -> Mean:
        return Mean.of(items.nll, items.keep, items.weight)

    def value(self, stats: Mean) -> float:
        return mean_of(stats)

    def blank(self, classes: int) -> Mean:
        return Mean.blank()

    def span(self, stats: Mean, clusters: list[Mean]) -> Span:
        return mean_span(stats, clusters)
