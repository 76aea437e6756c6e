"""A margin and a strength for MbLS and ACLS, from the logits of a trained network.

The margin stands on two numbers. One is read from the data, if there are labels: cut every logit distance at m; at one
m these same predictions would be as confident on average as they are right. The other is what papers used. Training
with a margin restrains more than cutting does: small networks on Fashion-MNIST came out underconfident with the first
number (4.3 to 5.5), and between a little under- and overconfident with the second (6). So where the second is larger
the proposal lies half way.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from confide.analysis.spread import distances, pool, quantiles, share
from confide.analysis.suggestion import Cut, Labelled, Suggestion
from confide.core.errors import InputError
from confide.core.rows import Rows, arrange, clean
from confide.core.simplex import top
from confide.core.validate import check_values, on_simplex
from confide.metrics.ece import ECE

STRENGTH = 0.1  # of every published MbLS result, with the penalty's mean over the classes
FEW, MANY = 6.0, 10.0  # published margins: CIFAR-10's, and that of 20 classes or more and of segmentation
MANY_CLASSES = 20
LARGEST = 1 << 24  # how many logits are looked at; of more, rows evenly spread
DEAD = 0.01  # a margin that fewer distances exceed does nothing


@torch.no_grad()
def suggest(input: Tensor, target: Tensor | None = None, *, ignore_index: int = -100, dim: int = 1) -> Suggestion:
    """Propose a margin and a strength from held-out logits and, far better, the labels that belong to them."""
    rows = _arranged(input, target, ignore_index, dim)
    kept = clean(rows.z, rows.y, ignore_index, None)
    keep = kept.mass != 0
    z, y = kept.z.movedim(1, -1)[keep], kept.y[keep]
    if not len(z):
        raise InputError("there is no row to look at: all labels are ignored, or there are none")
    every = math.ceil(z.numel() / LARGEST)
    z, y = z[::every], y[::every]
    labelled = None if target is None else _labelled(z, y)
    return _suggestion(z, every, len(rows.shape) > 1, labelled)


def _arranged(input: Tensor, target: Tensor | None, ignore_index: int, dim: int) -> Rows:
    """Rows whose logits and labels can be meant."""
    if target is not None and (target.is_floating_point() or target.shape == input.shape):
        raise InputError(
            f"labels must be class numbers, one a row, got {target.dtype} of shape {tuple(target.shape)}; of "
            "probabilities or one-hot rows take the argmax over the classes"
        )
    rows = arrange(input, _no_labels(input, dim) if target is None else target, dim)
    if rows.z.numel() and bool(on_simplex(rows.z).all()):
        raise InputError(
            "these are probabilities, not logits: every row lies in [0, 1] and sums to 1. Save what comes before the "
            "softmax, or the logarithm of the probabilities, which are valid logits"
        )
    check_values(rows, ignore_index)
    return rows


def _no_labels(input: Tensor, dim: int) -> Tensor:
    """A target of the right shape, for the layout alone."""
    axis = dim if input.dim() > 1 else 0
    whole = -input.dim() <= axis < input.dim()
    return torch.zeros_like(input.select(axis, 0) if whole else input, dtype=torch.int64)


def _suggestion(z: Tensor, every: int, dense: bool, labelled: Labelled | None) -> Suggestion:
    classes, keep = z.shape[1], torch.ones(len(z), dtype=torch.bool, device=z.device)
    published = MANY if dense or classes >= MANY_CLASSES else FEW
    margin = _margin(z, keep, labelled, published)
    rest = max(margin, _held(classes))
    return Suggestion(
        rows=len(z),
        every=every,
        classes=classes,
        dense=dense,
        confidence=_confidence(_closeness(z)).mean().item(),
        labelled=labelled,
        published=published,
        margin=margin,
        strength=STRENGTH,
        distances=distances(z, keep, margin),
        samples=share((top(z) - z > margin).any(1)),
        rest=rest,
        rest_confidence=1 / (1 + (classes - 1) * math.exp(-rest)),
    )


def _margin(z: Tensor, keep: Tensor, labelled: Labelled | None, published: float) -> float:
    if labelled is not None:
        cut = labelled.cut.margin if labelled.cut else published
        return round(max(cut, (cut + published) / 2), 1)
    found = pool(z, keep)
    if len(found) and share(found > published) < DEAD:
        return round(quantiles(found, (0.75,))[0], 1)
    return published


def _held(classes: int) -> float:
    """Nearer than this, cross-entropy's pull on a class, its probability, is stronger than the penalty's push."""
    return math.log(max(classes / STRENGTH - classes + 1, 1.0))


def _labelled(z: Tensor, y: Tensor) -> Labelled:
    closeness, right = _closeness(z), (z.argmax(1) == y).double()
    excess = _confidence(closeness) - right
    accuracy, gap = right.mean().item(), excess.mean().item()
    error = 2 * excess.std(correction=0).item() / math.sqrt(len(excess))
    cut = Cut(*(_cut(closeness, accuracy + by) for by in (0.0, -error, error))) if gap > error else None
    return Labelled(accuracy, ECE()(z, y), gap, error, cut)


def _closeness(z: Tensor) -> Tensor:
    """exp(-distance): 1 for the largest logit."""
    return (z - top(z)).exp()


def _confidence(closeness: Tensor, margin: float = math.inf) -> Tensor:
    """Of every row, with its distances cut at the margin."""
    return 1 / closeness.clamp(min=math.exp(-margin)).sum(1).double()


def _cut(closeness: Tensor, confidence: float) -> float:
    """The margin at which the mean confidence is this; it grows with the margin."""
    low, high = 0.0, 100.0
    for _ in range(30):
        middle = (low + high) / 2
        if _confidence(closeness, middle).mean().item() < confidence:
            low = middle
        else:
            high = middle
    return middle
