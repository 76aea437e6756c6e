"""Telling rows apart by how sure the model is: correct ones from errors, or data like its own from other data."""

from __future__ import annotations

from typing import Any, TypeVar

from torch import Tensor

from confide.core.errors import InputError, KnobError
from confide.metrics.items import Items
from confide.metrics.ranks import Ranks

T = TypeVar("T")


def oriented(task: T, score: T, positive: T) -> tuple[T, T, T]:
    """The settings, if they are known."""
    one_of("task", task, ("misclassification", "ood"))
    one_of("positive", positive, ("sure", "unsure"))
    return task, score, positive


def one_of(name: str, value: T, choices: tuple[Any, ...]) -> T:
    """The value, if it is one of them."""
    if value not in choices:
        raise KnobError(f"{name}={value!r} is unknown; it may be {', '.join(map(repr, choices))}")
    return value


def task_ranks(items: Items, score: Tensor, task: str) -> Ranks:
    """Scores, and whether a row is correct, or in distribution."""
    if task == "misclassification":
        return Ranks.of(score, items.hit, items.keep, items.weight)
    if items.soft is not None or bool((items.y > 1).any()):
        raise InputError("task='ood' takes targets of 0 (in distribution) and 1 (out of it), and no other labels")
    return Ranks.of(score, items.y == 0, items.keep, items.weight)
