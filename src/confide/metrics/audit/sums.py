"""What an audit adds up: of all rows, and less of each group, unit and cluster of units."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from confide.core.bins import Histogram
from confide.core.stats import Bag, exactly
from confide.core.sums import Mean, Tally
from confide.metrics.brier import squared_error
from confide.metrics.classes import by_class, tally
from confide.metrics.curves import BRIEF
from confide.metrics.items import Items
from confide.metrics.ranks import Ranks

MANY = 100  # clusters keep bins of every class up to so many classes


@dataclass(frozen=True, eq=False, repr=False)
class Part(Bag):
    """Of a group or a unit: bins of the top label, and means."""

    top: Histogram
    hit: Mean
    gap: Mean
    nll: Mean
    brier: Mean


@dataclass(frozen=True, eq=False, repr=False)
class Whole(Bag):
    """Of all rows, or of a cluster."""

    top: Ranks
    hit: Mean
    gap: Mean
    nll: Mean
    brier: Mean
    tally: Tally
    classes: Histogram

    @classmethod
    def of(cls, items: Items, bins: int) -> Whole:
        """Add up the rows."""
        rows = (items.hit, exactly(items.confidence) - exactly(items.hit), items.nll, squared_error(items))
        hit, gap, nll, brier = (Mean.of(x, items.keep, items.weight) for x in rows)
        top = Ranks.of(items.confidence, items.hit, items.keep, items.weight)
        return cls(top, hit, gap, nll, brier, tally(items), by_class(items, bins))

    @classmethod
    def blank(cls, classes: int, bins: int) -> Whole:
        """No rows."""
        none = Mean.blank()
        return cls(Ranks.blank(), none, none, none, none, Tally.blank(classes), Histogram.blank(classes, bins))

    def brief(self) -> Whole:
        """What a cluster keeps."""
        few = self.classes.count.shape[0] <= MANY
        classes = self.classes if few else Histogram.blank(self.classes.count.shape[0], 0)
        return dataclasses.replace(self, top=self.top.brief(BRIEF), classes=classes)

    def part(self, bins: int) -> Part:
        """What a group or a unit keeps."""
        return Part(self.top.grid.fold(bins), self.hit, self.gap, self.nll, self.brier)
