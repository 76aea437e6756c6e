"""What a loss does to a batch: where its penalty acts, how hard, and what that does to the predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from confide.analysis.spread import Distances, Histogram, distances, share
from confide.core.errors import InputError
from confide.core.knobs import knobs_of
from confide.core.simplex import cross_entropy, one_hot, predicted, softmax
from confide.losses.loss import Loss

CLIP = (0.0, 0.1)  # as in Fig. 3 of the ACLS paper, with its 20 bins


@dataclass(frozen=True)
class Activity:
    """Shares are fractions of the rows (samples, pixels, tokens) that are not ignored, or of their entries.

    The penalty is what a loss adds to cross-entropy, and it acts on an entry where it moves the label (C of the ACLS
    paper). One step moves the logits of every row down the gradient of its own loss, z - step * dloss/dz.
    """

    criterion: str
    rows: int
    classes: int
    entries: float  # share of entries on which the penalty acts
    samples: float  # share of rows with at least one such entry
    per_sample: tuple[int, ...]  # per_sample[n]: how many rows have n such entries
    penalty: Histogram  # its value in every row, clipped: Fig. 3 of the ACLS paper
    step: float
    flipped: float  # share of rows whose predicted class one step changes
    lost: float  # share of rows whose prediction was right and no longer is
    distances: Distances

    def __str__(self) -> str:
        if not self.rows:
            return f"{self.criterion}\nEvery sample is ignored: there is nothing to tell."
        return "\n".join((self.criterion, *self._sentences()))

    def _sentences(self) -> list[str]:
        gaps = self.distances
        return [
            f"{self.rows:,} samples, {self.classes} classes.",
            f"The penalty acts on {self.entries:.1%} of all entries and in {self.samples:.1%} of the samples"
            + (f", there on {self._median()} of {self.classes} classes in the median." if self.samples else "."),
            f"A gradient step of {self.step:g} on the logits changes {self.flipped:.2%} of the predictions; "
            f"{self.lost:.2%} were right and are lost.",
            f"Logit distances: half lie below {gaps.at(0.5):.1f}, and 5% above {gaps.at(0.95):.1f}"
            + (f"; {gaps.beyond:.1%} lie beyond the margin of {gaps.margin:g}." if gaps.beyond is not None else "."),
        ]

    def _median(self) -> int:
        """Of the number of entries on which it acts, in rows where it acts at all."""
        half, seen = sum(self.per_sample[1:]) / 2, 0
        for number, count in enumerate(self.per_sample[1:], start=1):
            seen += count
            if seen >= half:
                return number
        return 0


@torch.no_grad()
def activity(
    criterion: Loss,
    input: Tensor,
    target: Tensor,
    *,
    step: float = 1.0,
    clip: tuple[float, float] = CLIP,
    **side: Any,
) -> Activity:
    """Look at one batch. `side` is what the loss itself wants beside input and target.

    `lost` is the failure that the ACLS paper describes: lowering the largest logit may hand the prediction to the
    runner-up. The paper found it in 0.29% of its samples, after steps of a network, of whose size logits know nothing;
    here the logits themselves take a step of the given size. Cross-entropy alone never loses a right prediction so.
    """
    if not isinstance(criterion, Loss):
        raise InputError(
            f"activity looks at one loss of confide, got {type(criterion).__name__}; of a sum pass one of its `parts`"
        )
    if not math.isfinite(step) or not clip[0] < clip[1]:
        raise InputError(f"step must be finite and clip rise, got step={step!r} and clip={clip!r}")
    _, kept, context = criterion.prepare(input, target, **side)
    z, y, keep = kept.z, kept.y, kept.mass != 0
    shift, label = criterion.shift(z, y, *context), one_hot(z, y)
    numbers = ((shift != 0).sum(1))[keep]
    stepped = z - step * (softmax(z) - label - shift)
    same = (predicted(stepped) & predicted(z)).any(1)
    right = (predicted(label) & predicted(z)).any(1)
    return Activity(
        criterion=f"{type(criterion).__name__}({criterion.extra_repr()})",
        rows=int(keep.sum()),
        classes=z.shape[1],
        entries=share((shift != 0).movedim(1, -1)[keep]),
        samples=share(numbers != 0),
        per_sample=tuple(torch.bincount(numbers, minlength=z.shape[1] + 1).tolist()),
        penalty=Histogram.of((criterion.loss(z, y, *context) - cross_entropy(z, y))[keep], *clip),
        step=step,
        flipped=share(~same[keep]),
        lost=share((right & ~same)[keep]),
        distances=distances(z, keep, _margin(criterion)),
    )


def _margin(criterion: Loss) -> float | None:
    knob = knobs_of(type(criterion)).get("margin")
    return None if knob is None else getattr(criterion, knob.attribute)
