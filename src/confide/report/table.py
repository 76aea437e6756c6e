"""Numbers ready to be shown: the demo's table and what it says in one sentence, and the f and C curves of a loss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

import torch
from torch import Tensor

from confide.losses.loss import Loss
from confide.metrics.accuracy import Accuracy
from confide.metrics.ece import ECE
from confide.metrics.nll import NLL
from confide.study.demo import Run

CLASSES = 10  # of the logits behind the curves
FARTHEST = 20.0  # their largest distance
POINTS = 401
LEVEL = 1e-12  # a gradient smaller than this is rounding


@dataclass(frozen=True)
class Spread:
    """A mean over seeds and its sample standard deviation, None for a single seed."""

    mean: float
    sd: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(fmean(values), stdev(values) if len(values) > 1 else None)


@dataclass(frozen=True)
class Row:
    """One method of the table; all numbers are fractions."""

    method: str
    seeds: int
    accuracy: Spread
    nll: Spread
    ece: Spread


def tabulate(runs: Iterable[Run]) -> list[Row]:
    """One row per method, in the order of `by_method`."""
    return [_row(method, of_method) for method, of_method in by_method(runs).items()]


def by_method(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs of each method, in the order in which the methods first appear."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.method, []).append(run)
    return groups


def _row(method: str, runs: list[Run]) -> Row:
    values = []
    for run in runs:
        metrics = Accuracy(), NLL(), ECE()
        for metric in metrics:
            metric.update(run.logits, run.labels)
        values.append([metric.compute() for metric in metrics])
    accuracy, nll, ece = (Spread.of(column) for column in zip(*values, strict=True))
    return Row(method, len(runs), accuracy, nll, ece)


def verdict(rows: Sequence[Row]) -> str:
    """What was gained over the first row, in one sentence. A difference counts where mean +- sd do not overlap."""
    base, others = rows[0], rows[1:]
    if not others:
        return f"{base.method} alone: there is nothing to compare it with."
    best = min(others, key=lambda row: row.ece.mean)
    if best.ece.mean >= base.ece.mean:
        return (
            f"Nothing was gained: no method has a lower ECE than {base.method} ({_percent(base.ece)}); "
            f"the nearest, {best.method}, has {_percent(best.ece)}."
        )
    if not _apart(best.ece, base.ece):
        return (
            f"Nothing was clearly gained: the lowest ECE, {_percent(best.ece)} with {best.method}, lies within the "
            f"spread over seeds of {base.method}'s {_percent(base.ece)}."
        )
    chance = "; one seed cannot tell this from chance" if base.seeds == 1 else ""
    return (
        f"{best.method} has the lowest ECE, {_percent(best.ece)} instead of {base.method}'s {_percent(base.ece)}, "
        f"{_price(base, best)}{chance}."
    )


def _price(base: Row, best: Row) -> str:
    """What happened to the accuracy."""
    numbers = f"{_percent(best.accuracy)} instead of {_percent(base.accuracy)}"
    if base.seeds == 1:
        return f"with an accuracy of {numbers}"
    if not _apart(best.accuracy, base.accuracy):
        return f"with an accuracy that is the same within the spread over seeds ({numbers})"
    if best.accuracy.mean > base.accuracy.mean:
        return f"and a higher accuracy ({numbers})"
    return f"at the cost of accuracy ({numbers})"


def _apart(a: Spread, b: Spread) -> bool:
    return abs(a.mean - b.mean) > (a.sd or 0.0) + (b.sd or 0.0)


def _percent(value: Spread) -> str:
    return f"{100 * value.mean:.1f}%"


class Side(NamedTuple):
    """f and C of one class along the curve."""

    f: tuple[float, ...]
    acts: tuple[bool, ...]


@dataclass(frozen=True)
class Curve:
    """How a loss softens a right prediction whose logit lies `distance` above all others, which are equal and 0."""

    distance: tuple[float, ...]
    predicted: Side
    other: Side
    lowest: Side  # the first of the equal others: the one that a minimum's gradient goes to
    rest: float | None  # distance up to which the true logit is pulled up; None if that is past the last one
    confidence: float  # there, or at the last distance


def curve(criterion: Loss, classes: int = CLASSES, farthest: float = FARTHEST, points: int = POINTS) -> Curve:
    """Read f and C off `criterion.smoothing`, as Fig. 1 of the ACLS paper draws them."""
    distance = torch.linspace(0, farthest, points, dtype=torch.float64)
    z, y = _family(distance, classes)
    f, acts = criterion.smoothing(z, y)
    predicted, lowest, other = (Side(tuple(f[:, k].tolist()), tuple((acts[:, k] != 0).tolist())) for k in (0, 1, -1))
    rest = _rest(criterion, distance, classes)
    end = torch.tensor([farthest if rest is None else rest], dtype=torch.float64)
    confidence = _family(end, classes)[0].softmax(1)[0, 0].item()
    return Curve(tuple(distance.tolist()), predicted, other, lowest, rest, confidence)


def _family(distance: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    z = torch.zeros(len(distance), classes, dtype=torch.float64)
    z[:, 0] = distance
    return z, torch.zeros(len(distance), dtype=torch.int64)


def _rest(criterion: Loss, distance: Tensor, classes: int) -> float | None:
    """The first distance at which the loss no longer pulls the true logit up, to a millionth of a grid step."""
    for _ in range(3):
        still = _pulled(criterion, distance, classes)
        if bool(still.all()):
            return None
        first = int(still.logical_not().to(torch.int64).argmax())
        low, high = distance[max(first - 1, 0)].item(), distance[first].item()
        distance = torch.linspace(low, high, 101, dtype=torch.float64)
    return high


def _pulled(criterion: Loss, distance: Tensor, classes: int) -> Tensor:
    """Whether the gradient, probability minus effective target, still raises the true logit."""
    z, y = _family(distance, classes)
    return (z.softmax(1) - criterion.target(z, y))[:, 0] < -LEVEL
