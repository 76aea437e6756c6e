"""EAURC: the area under the risk-coverage curve above what the best order would give."""

from __future__ import annotations

from confide.metrics.curves import BRIEF, aurc, best_aurc, rank_span
from confide.metrics.estimate import Span
from confide.metrics.items import Items
from confide.metrics.metric import Metric
from confide.metrics.ranked import top_ranks
from confide.metrics.ranks import Ranks, Steps


class EAURC(Metric[Ranks]):
    """AURC less that of the best possible order of the same rows: what the confidence could still win.

    Exact up to 65,536 rows; beyond, confidences within one of 7200 cells count as equal.
    """

    definition = (
        "AURC - (r + (1 - r) log(1 - r)), r the error rate: the excess over the best order of the same items, in the "
        "limit of many."
    )

    def observe(self, items: Items) -> Ranks:
        return top_ranks(items)

    def brief(self, stats: Ranks) -> Ranks:
        return stats.brief(BRIEF)

    def value(self, stats: Ranks) -> float:
        return _excess(stats.steps())

    def blank(self, classes: int) -> Ranks:
        return Ranks.blank()

    def span(self, stats: Ranks, clusters: list[Ranks]) -> Span:
        return rank_span(stats, clusters, _excess)


def _excess(steps: Steps) -> float:
    return aurc(steps) - best_aurc(steps)
