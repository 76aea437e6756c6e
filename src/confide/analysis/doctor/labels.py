"""Labels that are no class, and classes that never occur."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import torch

from confide.analysis.doctor.batch import Batch, Finding, Setting, Tally, share, where

IGNORED = (255, -1, -100)  # the values in daily use
SHOWN = 8
MOST = 4096  # distinct values that are kept count of


class Labels:
    """Values outside the classes: an ignore label that was not named, or a count that begins at 1."""

    fine = "labels are within the classes"

    def __init__(self, setting: Setting) -> None:
        self.setting, self.stray, self.rows = setting, Tally(), 0
        self.values: Counter[int] = Counter()
        self.zero = False

    def observe(self, batch: Batch) -> None:
        if batch.y is None:
            return
        self.rows += len(batch.y)
        self.zero = self.zero or bool((batch.y == 0).any())
        stray = ~batch.labelled
        self.stray.add(stray, batch)
        values, counts = batch.y[stray].unique(return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            if value in self.values or len(self.values) < MOST:
                self.values[value] += count

    def findings(self) -> Iterator[Finding]:
        if not self.stray.count:
            return
        most = self.values.most_common(SHOWN)
        shown = ", ".join(f"{value} ({count:,})" for value, count in sorted(most))
        yield Finding(
            "labels-out-of-range",
            True,
            f"labels outside 0 to {self.setting.classes - 1} in {share(self.stray.count, self.rows)} rows, first in "
            f"{where(self.stray.first)}: {shown}{', ...' if len(self.values) > SHOWN else ''}",
            "Some tools crash on them, others count each as a wrong answer.",
            self._fix([value for value, _ in most]),
            self.stray.count,
            self.stray.first,
        )

    def _fix(self, values: list[int]) -> str:
        if values == [self.setting.classes] and not self.zero:
            return "No label is 0: labels seem to count from 1. Subtract 1."
        likely = [value for value in values if value in IGNORED] or values[:1]
        if len(values) <= 2:
            return f"This looks like an ignore label: pass --ignore-index {likely[0]}."
        return "Do the labels belong to another set of classes? They must count from 0, one number for each score."


class Absent:
    """Classes without a label, and classes that are never predicted."""

    fine = "every class occurs, in labels and in predictions"

    def __init__(self, setting: Setting) -> None:
        self.classes = setting.classes
        self.labels = torch.zeros(setting.classes, dtype=torch.int64)
        self.predicted = torch.zeros(setting.classes, dtype=torch.int64)

    def observe(self, batch: Batch) -> None:
        self.predicted += torch.bincount(batch.predicted, minlength=self.classes)
        if batch.y is not None:
            self.labels += torch.bincount(batch.y[batch.labelled], minlength=self.classes)

    def findings(self) -> Iterator[Finding]:
        sides = (("never a label", self.labels), ("never predicted", self.predicted))
        for what, counts in sides:
            lost = (counts == 0).nonzero().squeeze(1).tolist()
            if lost and counts.sum():
                names = ", ".join(map(str, lost[:SHOWN])) + (", ..." if len(lost) > SHOWN else "")
                yield Finding(
                    "absent-classes",
                    False,
                    f"{len(lost):,} of {self.classes:,} classes are {what}: {names}",
                    "Averages over classes differ between tools: some count such a class as perfect, some drop it.",
                    "Fine if it is meant; else look whether the scores have columns that stand for nothing.",
                    len(lost),
                )
