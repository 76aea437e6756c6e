"""AUROC: how well confidence tells correct rows from errors, or data like the training data from other data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from confide.metrics.curves import BRIEF, auroc, rank_span
from confide.metrics.detection import oriented, task_ranks
from confide.metrics.estimate import Span
from confide.metrics.items import Items
from confide.metrics.metric import Metric, Options
from confide.metrics.ranks import Ranks, Steps
from confide.metrics.scores import score_named

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AUROC(Metric[Ranks]):
    """Chance that a correct row (or one in distribution) is surer than an error (or one out of it); ties count half.

    task="ood" takes targets of 0 (in distribution) and 1 (out of it) in place of labels. `positive` says which rows are
    to be found: the "sure" ones (correct, in distribution) or the "unsure" (errors, out of distribution).
    Exact up to 65,536 rows; beyond, scores within one of 7200 cells count as equal.
    """

    definition = (
        "Area under the ROC curve of a score of sureness (confidence max_k p_k, entropy 1 - H(p) / log C, or margin): "
        "P(score of a correct item > score of an error) + P(equal) / 2; task='ood': in- against out-of-distribution."
    )
    goal = "high"

    def __init__(
        self,
        *,
        task: Literal["misclassification", "ood"] = "misclassification",
        score: Literal["confidence", "entropy", "margin"] = "confidence",
        positive: Literal["sure", "unsure"] = "sure",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        self.task, self.score, self.positive = oriented(task, score, positive)
        self._score = score_named(score)

    def settings(self) -> dict[str, Any]:
        return {"task": self.task, "score": self.score, "positive": self.positive, **super().settings()}

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
        return auroc(steps if self.positive == "sure" else steps.flipped())
