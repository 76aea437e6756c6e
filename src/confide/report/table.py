"""Numbers ready to be shown: the demo's table, and what it says in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from confide.metrics.accuracy import Accuracy
from confide.metrics.ece import ECE
from confide.metrics.nll import NLL
from confide.study.demo import Run


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
