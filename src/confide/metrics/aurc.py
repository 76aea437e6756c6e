"""AURC: the area under the risk-coverage curve."""

from __future__ import annotations

from confide.metrics.curves import BRIEF, aurc, rank_span
from confide.metrics.estimate import Span
from confide.metrics.items import Items
from confide.metrics.metric import Metric
from confide.metrics.ranked import top_ranks
from confide.metrics.ranks import Ranks


class AURC(Metric[Ranks]):
    """Mean error rate when rows are kept from the surest on, over all coverages: low is good.

    Rows of equal confidence are kept in random order (the mean over all orders). Exact up to 65,536 rows; beyond,
    confidences within one of 7200 cells count as equal.
    """

    definition = (
        "Area under the risk-coverage curve: mean over k = 1..n of the error rate among the k most confident items, "
        "equal confidences in random order."
    )

    def observe(self, items: Items) -> Ranks:
        return top_ranks(items)

    def brief(self, stats: Ranks) -> Ranks:
        return stats.brief(BRIEF)

    def value(self, stats: Ranks) -> float:
        return aurc(stats.steps())

    def blank(self, classes: int) -> Ranks:
        return Ranks.blank()

    def span(self, stats: Ranks, clusters: list[Ranks]) -> Span:
        return rank_span(stats, clusters, aurc)
