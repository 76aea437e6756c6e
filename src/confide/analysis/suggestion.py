"""What `suggest` answers, in numbers and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from confide.analysis.spread import Distances

FITTED = 0.995  # an accuracy that hardly any but training data have


@dataclass(frozen=True)
class Cut:
    """The margin that would close the gap, by cutting the distances at it."""

    margin: float
    low: float  # the same for a gap two standard errors larger
    high: float  # and smaller


@dataclass(frozen=True)
class Labelled:
    """What the labels add; all but the cut are fractions."""

    accuracy: float
    ece: float
    gap: float  # confidence minus accuracy
    error: float  # two standard errors of it
    cut: Cut | None  # None where the gap may be no gap at all


@dataclass(frozen=True)
class Suggestion:
    """A margin and a strength, what they stand on, and what they would touch."""

    rows: int
    every: int  # one of so many rows was looked at
    classes: int
    dense: bool  # rows are pixels or the like
    confidence: float
    labelled: Labelled | None
    published: float  # the papers' margin for such data
    margin: float
    strength: float
    distances: Distances  # with the share beyond the margin
    samples: float  # share of rows with a distance beyond the margin
    rest: float  # the distance at which a sure prediction is held
    rest_confidence: float

    def __str__(self) -> str:
        return "\n\n".join(f"{title}\n{text}" for title, text in self.sections())

    def sections(self) -> Iterator[tuple[str, str]]:
        """Title and text, in the order in which they are best read."""
        yield "What the logits say", f"{self._data()}\n{self._fit()}\n{self._gaps()}"
        yield "Suggestion", self._proposal()
        yield "Why this margin", self._why_margin()
        yield "Why this strength", self._why_strength()
        yield "What this cannot know", self._unknown()

    def _data(self) -> str:
        thinned = f" (one of {self.every})" if self.every > 1 else ""
        return f"{self.rows:,} samples{thinned}, {self.classes} classes."

    def _fit(self) -> str:
        found = self.labelled
        if found is None:
            return f"Mean confidence {self.confidence:.1%}; without labels nobody can say whether that is too high."
        numbers = f"Accuracy {found.accuracy:.1%}, mean confidence {self.confidence:.1%}, ECE {found.ece:.1%}:"
        points = f"by {100 * abs(found.gap):.1f} points, give or take {100 * found.error:.1f}."
        if abs(found.gap) <= found.error:
            return f"{numbers} the two differ {points[:-1]}, so neither over- nor underconfidence is shown."
        return f"{numbers} {'over' if found.gap > 0 else 'under'}confident {points}"

    def _gaps(self) -> str:
        if not self.distances.count:
            return "All classes but one are masked, so there are no distances."
        shown = ", ".join(f"{value:.1f} ({level:.0%})" for level, value in self.distances.quantiles.items())
        return f"Quantiles of the distances from the largest logit to the others: {shown}."

    def _proposal(self) -> str:
        needed = self.labelled is None or self.labelled.cut is not None
        return (
            f"{'' if needed else 'None is needed to lower the confidence. As a precaution:'}\n"
            f"MbLS(margin={self.margin:g}, strength={self.strength:g})  or  ACLS(margin={self.margin:g})\n"
            f"Either acts on {self.distances.beyond or 0:.1%} of these distances, in {self.samples:.1%} of the samples."
        ).lstrip()

    def _why_margin(self) -> str:
        kind = f"Papers used {self.published:g} for data of this kind"
        if self.labelled is None:
            if self.margin == self.published:
                return f"{kind}, and enough distances exceed it. With labels the data themselves would have a say."
            return (
                f"{kind}, but hardly a distance exceeds that, so it would do nothing; a quarter of them exceed "
                f"{self.margin:g}. With labels the data themselves would have a say."
            )
        if (cut := self.labelled.cut) is None:
            return f"{kind}. No overconfidence is shown that a margin could be fitted to."
        found = (
            f"Were every distance cut at {cut.margin:.1f} ({cut.low:.1f} to {cut.high:.1f}, allowing for noise), these "
            f"same predictions would be as confident on average as they are right. {kind}."
        )
        trials = "In trials on Fashion-MNIST, training with a margin restrained more than such a cut"
        if cut.margin >= self.published:
            return f"{found} That is tighter than these predictions call for. {trials}; a larger margin may do, too."
        return (
            f"{found} {trials}, so the suggestion lies half way: try {cut.margin:.1f}, {self.margin:g} and "
            f"{self.published:g} on held-out data."
        )

    def _why_strength(self) -> str:
        held = "the margin itself"
        if self.rest > self.margin:
            held = f"a distance of {self.rest:.1f}, since nearer than that it is weaker than cross-entropy's pull"
        return (
            f"The published MbLS runs all use {self.strength:g}, with the mean over the classes, and logits cannot "
            f"tell a better one. It holds a sure prediction at {held}: a confidence of "
            f"{_below_one(self.rest_confidence)}. ACLS keeps its own published strengths."
        )

    def _unknown(self) -> str:
        fitted = self.labelled is not None and self.labelled.accuracy > FITTED
        seen = (
            "These predictions are almost all right, which suggests data that the network was trained on: use others. "
            if fitted
            else "The logits must be of data that the network was not trained on; they do not show whether they are. "
        )
        dense = " Neighbours in an image or a text resemble each other, so the noise is larger than stated here."
        return (
            f"{seen}How much accuracy changes is unknown until you train: in the tables of the MbLS poster it moved "
            f"between -0.3 and +2.1 points against cross-entropy.{dense if self.dense and self.labelled else ''}"
        )


def _below_one(p: float) -> str:
    return f"{p:.1%}" if p < 0.9995 else f"{p:.3%}" if p < 0.999995 else "nearly 100%"
