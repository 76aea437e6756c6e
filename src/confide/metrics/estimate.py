"""A number with what is needed to believe it: its interval, what chance would show, and a verdict in words."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, TypedDict


class Bin(TypedDict):
    """One bar of a reliability diagram; the means of an empty bin are None."""

    lower: float
    upper: float
    count: int
    weight: float
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Span:
    """A 95 % interval; the value that a perfectly calibrated model would show; words for it, and a caveat."""

    low: float = math.nan
    high: float = math.nan
    chance: float | None = None
    verdict: str = ""
    note: str = ""


@dataclass(frozen=True)
class Estimate:
    """A metric's value and how far it can be believed. `chance` is None where calibration promises no value."""

    metric: str
    value: float
    low: float
    high: float
    chance: float | None
    n: int
    verdict: str
    note: str
    definition: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data; numbers that are not finite become None, as JSON has none."""
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in asdict(self).items()}


def worded(metric: str, value: float, n: int, span: Span, definition: str) -> Estimate:
    """With a verdict, where the metric has none of its own."""
    verdict = span.verdict or (_against_chance(metric, value, span) if n else f"{metric}: no data.")
    return Estimate(metric, value, span.low, span.high, span.chance, n, verdict, span.note, definition)


def _against_chance(metric: str, value: float, span: Span) -> str:
    interval = f"{metric} {value:.4g} (95 % interval {span.low:.4g} to {span.high:.4g})"
    if span.chance is None:
        return f"{interval}."
    chance = f"{span.chance:.4g} would be expected of a perfectly calibrated model at this n"
    if span.low <= 0:
        return f"{interval}: consistent with perfect calibration; {chance}."
    return f"{interval}: not calibrated; {chance}."
