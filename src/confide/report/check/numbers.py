"""Figures as numbers: what is to be drawn, prepared once for the page, for files and for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confide.metrics.audit.audit import Audit
from confide.report.check.advice import class_title
from confide.report.check.words import measured, percent

Result = Mapping[str, Any]
MOST = 30  # classes or groups in one figure


@dataclass(frozen=True)
class Bar:
    """A bin that holds predictions; all but the count are fractions."""

    lower: float
    upper: float
    count: int
    share: float
    confidence: float
    accuracy: float
    low: float
    high: float

    @property
    def words(self) -> str:
        return (
            f"confidence {percent(self.lower, 0)} to {percent(self.upper, 0)}: {self.count:,} predictions\n"
            f"mean confidence {percent(self.confidence)}\naccuracy {percent(self.accuracy)} "
            f"(95 % interval {percent(self.low)} to {percent(self.high)})"
        )


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram."""

    title: str
    bars: tuple[Bar, ...]
    ece: float | None
    total: int


@dataclass(frozen=True)
class Shares:
    """A histogram of confidences: (lower, upper, count, share) of each bin."""

    title: str
    bars: tuple[tuple[float, float, int, float], ...]
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Curve:
    """Risk against coverage."""

    title: str
    points: tuple[tuple[float, float, float], ...]  # coverage, risk, least confidence
    area: float | None


@dataclass(frozen=True)
class Dot:
    """One line of a dot plot, with its interval where there is one."""

    name: str
    value: float
    low: float | None
    high: float | None
    count: int
    faint: bool = False

    @property
    def words(self) -> str:
        span = "" if self.low is None else f" (95 % interval {measured(self.low)} to {measured(self.high)})"
        return f"{self.name}: {measured(self.value)}{span}\n{self.count:,} predictions"


@dataclass(frozen=True)
class Dots:
    """Values side by side, such as the ECE of groups; `at` is where all together lie."""

    title: str
    axis: str
    dots: tuple[Dot, ...]
    at: float | None


Figure = Reliability | Shares | Curve | Dots


def result_of(source: Audit | Result) -> Result:
    """Of an audit, of its result, or of one of the `checks` in a document of `confide check --json`."""
    if isinstance(source, Audit):
        return source.result()
    found: Result = source.get("result", source)
    return found


def value_of(result: Result, key: str) -> float | None:
    """Of a metric."""
    found: float | None = next((row["value"] for row in result["metrics"] if row["key"] == key), None)
    return found


def reliability(result: Result, title: str = "") -> Reliability:
    """Accuracy against confidence, with the interval of each accuracy."""
    total = sum(row["weight"] for row in result["bins"]) or 1.0
    keys = ("confidence", "accuracy", "low", "high")
    bars = tuple(
        Bar(row["lower"], row["upper"], row["count"], row["weight"] / total, *(row[key] for key in keys))
        for row in result["bins"]
        if row["accuracy"] is not None
    )
    return Reliability(title, bars, value_of(result, "ece"), result["n"])


def shares(result: Result, title: str = "") -> Shares:
    """How the confidences are spread."""
    rows, total = result["histogram"], sum(row["weight"] for row in result["histogram"]) or 1.0
    bars = tuple((row["lower"], row["upper"], row["count"], row["weight"] / total) for row in rows)
    gap, accuracy = value_of(result, "signed_gap"), value_of(result, "accuracy")
    confidence = None if gap is None or accuracy is None else accuracy + gap
    return Shares(title, bars, confidence, accuracy)


def risk_coverage(result: Result, title: str = "") -> Curve:
    """The error rate among the surest predictions."""
    points = tuple((row["coverage"], row["risk"], row["confidence"]) for row in result["risk_coverage"])
    return Curve(title, points, value_of(result, "aurc"))


def groups(result: Result, title: str = "") -> Dots:
    """ECE of every group, the worst first; of many the worst."""
    several = len({row["column"] for row in result["groups"]}) > 1
    dots = [
        Dot(
            f"{row['column']} = {row['value']}" if several else str(row["value"]),
            row["ece"]["value"],
            row["ece"]["low"],
            row["ece"]["high"],
            row["n"],
            row["too_few"],
        )
        for row in result["groups"]
        if row["ece"]["value"] is not None
    ]
    dots.sort(key=lambda dot: -dot.value)
    return Dots(title, "ECE", tuple(dots[:MOST]), value_of(result, "ece"))


def classes(result: Result, title: str = "", names: Sequence[str] = ()) -> Dots:
    """How much more probability each class gets than it occurs; of many those that are furthest off."""
    rows = sorted(result["classes"], key=lambda row: -abs(row["gap"] or 0.0))[:MOST]
    dots = [Dot(class_title(row["class"], names), row["gap"] or 0.0, None, None, int(row["count"])) for row in rows]
    dots.sort(key=lambda dot: -dot.value)
    return Dots(title, "mean probability - frequency", tuple(dots), 0.0)


def figures(result: Result, title: str = "", names: Sequence[str] = ()) -> dict[str, Figure]:
    """Every figure that these numbers give, by name."""
    found: dict[str, Figure] = {
        "reliability": reliability(result, title),
        "confidence": shares(result, title),
        "risk_coverage": risk_coverage(result, title),
        "classes": classes(result, title, names),
    }
    return found | ({"groups": groups(result, title)} if result["groups"] else {})
