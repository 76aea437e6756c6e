"""FPR95: how many errors pass where 95 % of the correct rows do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from confide.metrics.curves import BRIEF, false_positive_rate, rank_span
from confide.metrics.detection import one_of, oriented, task_ranks
from confide.metrics.estimate import Span
from confide.metrics.items import Items
from confide.metrics.metric import Metric, Options
from confide.metrics.ranks import Ranks, Steps
from confide.metrics.scores import score_named

if TYPE_CHECKING:
    from typing_extensions import Unpack


class FPR95(Metric[Ranks]):
    """Share of the negative rows at or above the threshold that keeps 95 % of the positive ones.

    task="ood" takes targets of 0 (in distribution) and 1 (out of it) in place of labels. `positive` says which rows are
    to be found: the "sure" ones (correct, in distribution) or the "unsure" (errors, out of distribution).
    Exact up to 65,536 rows; beyond, scores within one of 7200 cells count as equal.
    at="closest" takes the threshold whose recall is nearest to 95 %, as released code does, in place of the first that
    reaches it.
    """

    definition = (
        "False positive rate at the highest threshold whose recall of the positive items is at least 0.95 "
        "(at='closest': nearest to 0.95); positive items are the correct (in-distribution) ones, or for "
        "positive='unsure' the others."
    )
    goal = "low"

    def __init__(
        self,
        *,
        task: Literal["misclassification", "ood"] = "misclassification",
        score: Literal["confidence", "entropy", "margin"] = "confidence",
        positive: Literal["sure", "unsure"] = "sure",
        at: Literal["first", "closest"] = "first",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        self.task, self.score, self.positive = oriented(task, score, positive)
        self._score = score_named(score)
        self.at = one_of("at", at, ("first", "closest"))

    def settings(self) -> dict[str, Any]:
        return {"task": self.task, "score": self.score, "positive": self.positive, "at": self.at, **super().settings()}

    def observe(self, items: Items) -> Ranks:
        return task_ranks(items, self._score(items), self.task)

    def brief(self, stats: Ranks) -> Ranks:
        return stats.brief(BRIEF)

    def value(self, stats: Ranks) -> float:
        return self._number(stats.steps())

    def blank(self, classes: int) -> Ranks:
        return Ranks.blank()

    def span(self, stats: Ranks, clusters: list[Ranks]) -> Span:
        return rank_span(stats, clusters, self._number)

    def _number(self, steps: Steps) -> float:
        return false_positive_rate(steps if self.positive == "sure" else steps.flipped(), 0.95, self.at == "closest")
