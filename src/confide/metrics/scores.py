"""How sure a model is of a row, as a number in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from confide.core.errors import KnobError
from confide.metrics.items import Items


def confidence(items: Items) -> Tensor:
    """The probability of the predicted class."""
    return items.confidence


def entropy(items: Items) -> Tensor:
    """One minus the entropy of the probabilities, as a fraction of the largest that there is."""
    spread = -items.over_classes(torch.special.xlogy(items.p, items.p))
    return (1 - spread / math.log(items.classes)).clamp(0, 1)


def margin(items: Items) -> Tensor:
    """How far the probability of the predicted class lies above the next."""
    two = items.p.topk(2, dim=items.axis).values
    return two.select(items.axis, 0) - two.select(items.axis, 1)


SCORES: dict[str, Callable[[Items], Tensor]] = {"confidence": confidence, "entropy": entropy, "margin": margin}


def score_named(name: str) -> Callable[[Items], Tensor]:
    """One of SCORES."""
    if name not in SCORES:
        raise KnobError(f"score={name!r} is unknown; it may be {', '.join(map(repr, SCORES))}")
    return SCORES[name]
