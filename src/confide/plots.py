"""The figures of `confide check --report` as matplotlib axes, for notebooks.

from confide import plots
plots.reliability(audit)

Each takes an `Audit`, its `result()`, or one of the `checks` that `confide check --json` writes, and returns the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from confide.core.errors import InputError
from confide.metrics.audit.audit import Audit
from confide.report.check import numbers
from confide.report.check.drawing import draw
from confide.report.figures import figure_class

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Source = Audit | numbers.Result


def reliability(source: Source, axes: Axes | None = None, title: str = "") -> Axes:
    """Accuracy against confidence, with the interval of each bin and how many predictions it holds."""
    return _drawn(numbers.reliability(numbers.result_of(source), title), axes)


def confidence(source: Source, axes: Axes | None = None, title: str = "") -> Axes:
    """How the confidences are spread, with accuracy and mean confidence."""
    return _drawn(numbers.shares(numbers.result_of(source), title), axes)


def risk_coverage(source: Source, axes: Axes | None = None, title: str = "") -> Axes:
    """The error rate among the surest predictions."""
    return _drawn(numbers.risk_coverage(numbers.result_of(source), title), axes)


def classes(source: Source, axes: Axes | None = None, title: str = "", names: Sequence[str] = ()) -> Axes:
    """How much more probability each class gets than it occurs."""
    return _drawn(numbers.classes(numbers.result_of(source), title, names), axes)


def groups(source: Source, axes: Axes | None = None, title: str = "") -> Axes:
    """ECE of every group with its interval."""
    result = numbers.result_of(source)
    if not result["groups"]:
        raise InputError("there are no groups: give the audit groups= with every update")
    return _drawn(numbers.groups(result, title), axes)


def _drawn(figure: Any, axes: Axes | None) -> Axes:
    """Into the given axes, else into new ones that notebooks show, without pyplot's global state elsewhere."""
    if axes is None:
        figure_class()  # says which extra is missing
        from matplotlib import pyplot

        axes = pyplot.subplots(figsize=(4, 3.6), layout="constrained")[1]
    draw(axes, figure)
    return axes
