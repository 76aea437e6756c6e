"""Labels that do not belong to the predictions: shifted, permuted, shuffled, or their own argmax."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from confide.analysis.doctor.batch import Batch, Finding, Setting

FEWEST = 50  # rows below which nothing is said
MOST_CLASSES = 256  # for which a table of predictions and labels is kept
BETTER = 0.1  # by how much another reading of the labels must fit better
SURPRISE = 10  # errors that the confidences announce and that are not there
READINGS = {
    "one less": ("labels are one too high", "Subtract 1 from the labels, or drop the first column of scores."),
    "one more": ("labels are one too low", "Add 1 to the labels, or drop the column of a background class."),
    "row before": ("labels come one row early", "Shift the labels back by one row, and see where they were joined."),
    "row after": ("labels come one row late", "Shift the labels on by one row, and see where they were joined."),
    "turned": ("labels have their last two axes swapped", "Transpose the labels, or the scores."),
    "renamed": (
        "the columns of scores stand in another order than the labels count",
        "Reorder the columns: folders are often sorted by name, labels by number.",
    ),
}


class Agreement:
    """How often the label is the predicted class, as it stands and under other readings of the labels."""

    fine = "labels belong to the predictions"

    def __init__(self, setting: Setting) -> None:
        self.setting, self.rows, self.confidence = setting, 0, 0.0
        self.hits = dict.fromkeys(("as is", *READINGS), 0)
        self.labels = torch.zeros(setting.classes, dtype=torch.int64)
        self.predicted = torch.zeros(setting.classes, dtype=torch.int64)
        size = setting.classes if setting.classes <= MOST_CLASSES else 0
        self.table = torch.zeros(size, size, dtype=torch.int64)
        self.last: tuple[int, int] | None = None

    def observe(self, batch: Batch) -> None:
        if batch.y is None or not len(batch.y):
            return
        use = batch.labelled & batch.finite
        y, seen, classes = batch.y[use], batch.predicted[use], self.setting.classes
        self.rows += len(y)
        self.confidence += float(batch.confidence[use].double().sum())
        self.labels += torch.bincount(y, minlength=classes)
        self.predicted += torch.bincount(seen, minlength=classes)
        if len(self.table):
            self.table += torch.bincount(seen * classes + y, minlength=classes**2).reshape(classes, classes)
        everywhere = batch.y[batch.finite], batch.predicted[batch.finite]
        self._count("as is", seen, y)
        self._count("one less", everywhere[1], everywhere[0] - 1)
        self._count("one more", everywhere[1], everywhere[0] + 1)
        self._neighbours(batch)
        self._turned(batch)

    def _count(self, reading: str, seen: Tensor, y: Tensor) -> None:
        self.hits[reading] += int((seen == y).sum())

    def _neighbours(self, batch: Batch) -> None:
        """Rows of a table have an order that may have slipped; pixels have neighbours that are alike."""
        if len(batch.shape) > 1 or batch.y is None:
            return
        y, seen = batch.y, batch.predicted
        if self.last is not None:
            y = torch.cat((y.new_tensor([self.last[0]]), y))
            seen = torch.cat((seen.new_tensor([self.last[1]]), seen))
        self._count("row before", seen[1:], y[:-1])
        self._count("row after", seen[:-1], y[1:])
        self.last = int(y[-1]), int(seen[-1])

    def _turned(self, batch: Batch) -> None:
        square = len(batch.shape) > 2 and batch.shape[-1] == batch.shape[-2]
        if square and batch.index is None and batch.y is not None:
            self._count("turned", batch.predicted.reshape(batch.shape), batch.y.reshape(batch.shape).mT)

    def findings(self) -> Iterator[Finding]:
        if self.rows < FEWEST:
            return
        n, accuracy = self.rows, self.hits["as is"] / self.rows
        chance = float((self.labels.double() * self.predicted.double()).sum()) / n**2
        self.hits["renamed"] = self._renamed()
        best = max(READINGS, key=lambda reading: self.hits[reading])
        noise = 4 * math.sqrt(chance * (1 - chance) / n)
        if self.hits[best] / n > accuracy + BETTER and self.hits[best] / n > chance + BETTER + noise:
            yield self._other(best, accuracy)
        elif accuracy < chance + noise and self.confidence / n > accuracy + 2 * BETTER + noise:
            yield self._shuffled(accuracy, chance)
        elif self.hits["as is"] == n and n - self.confidence > SURPRISE:
            yield self._own()

    def _renamed(self) -> int:
        """Hits if every predicted class meant its most frequent label, where no two mean the same."""
        best = self.table.max(1) if len(self.table) else None
        if best is None:
            return 0
        used = best.indices[self.predicted > 0]
        return int(best.values.sum()) if len(used.unique()) == len(used) else 0

    def _other(self, reading: str, accuracy: float) -> Finding:
        what, fix = READINGS[reading]
        return Finding(
            "misaligned",
            True,
            f"{what}: read so, {self.hits[reading] / self.rows:.1%} are right; as they stand, {accuracy:.1%}",
            "Every number that needs labels is wrong.",
            fix,
            self.rows,
        )

    def _shuffled(self, accuracy: float, chance: float) -> Finding:
        return Finding(
            "misaligned",
            True,
            f"accuracy is {accuracy:.1%}, and chance alone gives {chance:.1%}, though the mean confidence is "
            f"{self.confidence / self.rows:.1%}",
            "Every number that needs labels is wrong.",
            "Labels and predictions seem to come in a different order (a shuffled loader?) or from different data: "
            "save both in one loop.",
            self.rows,
        )

    def _own(self) -> Finding:
        return Finding(
            "no-errors",
            False,
            f"all {self.rows:,} predictions are right, where confidences announce "
            f"{self.rows - self.confidence:,.0f} errors",
            "If the labels are the network's own predictions, accuracy is 1 and the network looks underconfident.",
            "Look where the labels come from: nnU-Net writes its own segmentation beside its probabilities.",
        )
