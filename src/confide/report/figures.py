"""Reliability diagrams of several methods side by side, as a PNG or SVG file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.core.errors import KnobError, MissingExtra
from confide.metrics.ece import ECE
from confide.metrics.estimate import Bin
from confide.report.table import Spread, by_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from confide.study.demo import Run

FORMATS = (".png", ".svg")
DPI = 100
PANEL, LINE = 3.1, 0.28  # inches: the width of a panel, the height of a line of the legend
# Okabe and Ito's colours, which stay apart for colour-blind readers; hatches and place tell the same without colour.
INK, FAINT = "#333333", "#999999"
BAR: dict[str, Any] = {"facecolor": "#56B4E9", "edgecolor": "#FFFFFF", "linewidth": 0.8}
GAPS: Mapping[bool, dict[str, Any]] = {
    True: {"facecolor": "#D55E0055", "edgecolor": "#D55E00", "hatch": "////", "linewidth": 0.8},
    False: {"facecolor": "#0072B2", "edgecolor": "#FFFFFF", "hatch": "....", "linewidth": 0.8},
}
NAMES = ("accuracy", "confidence above accuracy", "confidence below accuracy")
TITLE, LABEL, SMALL = 15, 13, 12


@dataclass(frozen=True)
class Panel:
    """One diagram: a title, the bars (`ECE.bins()`), and the ECE to print, a fraction."""

    title: str
    bins: Sequence[Bin]
    ece: Spread

    @classmethod
    def of(cls, title: str, metric: ECE) -> Panel:
        """What one metric has gathered."""
        return cls(title, metric.bins(), Spread(metric.compute()))


def panels(runs: Iterable[Run]) -> list[Panel]:
    """One panel per method: the bars hold the rows of all its seeds, the ECE is the mean over seeds as in the table."""
    return [_pooled(method, [_ece(run) for run in of_method]) for method, of_method in by_method(runs).items()]


def check_path(path: Path) -> None:
    """Refuse early what could not be written after minutes of work."""
    if path.suffix.lower() not in FORMATS:
        raise KnobError(f"cannot draw {str(path)!r}: the file name must end in {' or '.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise KnobError(f"cannot draw {str(path)!r}: there is no folder {str(path.parent)!r}")
    figure_class()


def reliability_diagrams(panels: Sequence[Panel], path: Path | str) -> None:
    """Draw the panels in one row with common axes."""
    path = Path(path)
    check_path(path)
    if not panels:
        raise KnobError("there is no panel to draw")
    legend = ceil(len(NAMES) / len(panels))  # lines
    size = (PANEL * len(panels) + 0.5, 4.7 + LINE * legend)
    figure = figure_class()(figsize=size, dpi=DPI, facecolor="white")
    grid = figure.subplots(2, len(panels), sharex=True, sharey="row", squeeze=False, height_ratios=(4, 1))
    _place(figure, 0.75 + LINE * legend)
    highest = ceil(10 * max(max(_shares(panel), default=0.0) for panel in panels)) / 10 or 1.0
    for number, panel in enumerate(panels):
        _diagram(grid[0, number], panel)
        _histogram(grid[1, number], panel, highest)
    _label(figure, grid[0, 0], grid[1, 0], legend)
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Without a date and random names, so that the same numbers give the same file."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "confide"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def figure_class() -> type[Figure]:
    """Matplotlib's, not pyplot's: those figures and styles are global."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots") from error
    return Figure


def _ece(run: Run) -> ECE:
    metric = ECE()
    metric.update(run.logits, run.labels)
    return metric


def _pooled(title: str, metrics: Sequence[ECE]) -> Panel:
    return Panel(title, reduce(add, metrics).bins(), Spread.of([metric.compute() for metric in metrics]))


def _place(figure: Figure, below: float) -> None:
    """Margins in inches, so that panels keep their size whatever their number."""
    width, height = figure.get_size_inches()
    figure.subplots_adjust(
        left=0.9 / width, right=1 - 0.15 / width, top=1 - 0.7 / height, bottom=below / height, wspace=0.1, hspace=0.1
    )


def _diagram(axes: Axes, panel: Panel) -> None:
    for item in panel.bins:
        accuracy, confidence = item["accuracy"], item["confidence"]
        if accuracy is None or confidence is None:  # empty bins stay blank
            continue
        left, width = item["lower"], item["upper"] - item["lower"]
        axes.bar(left, accuracy, width, align="edge", **BAR)
        axes.bar(left, confidence - accuracy, width, accuracy, align="edge", **GAPS[confidence > accuracy])
    axes.plot((0, 1), (0, 1), color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.set(xlim=(0, 1), ylim=(0, 1), yticks=(0, 0.5, 1))
    axes.set_title(panel.title, fontsize=TITLE, color=INK, fontweight="bold", pad=24)
    ece = axes.text(0.5, 1.025, _ece_text(panel.ece), fontsize=LABEL, color=INK, transform=axes.transAxes)
    ece.set_horizontalalignment("center")
    tidy(axes)


def _histogram(axes: Axes, panel: Panel, highest: float) -> None:
    for item, share in zip(panel.bins, _shares(panel), strict=True):
        width = item["upper"] - item["lower"]
        axes.bar(item["lower"], share, width, align="edge", facecolor=FAINT, edgecolor="#FFFFFF", linewidth=0.8)
    axes.set(xlim=(0, 1), ylim=(0, highest), xticks=(0, 0.5, 1), yticks=(0, highest))
    axes.set_xticklabels(("0", "0.5", "1"))
    axes.set_yticklabels(("0", f"{highest:.0%}"))
    tidy(axes)


def _shares(panel: Panel) -> list[float]:
    total = sum(item["count"] for item in panel.bins) or 1
    return [item["count"] / total for item in panel.bins]


def tidy(axes: Axes) -> None:
    """Quiet axes: small grey ticks, no box."""
    axes.tick_params(labelsize=SMALL, colors=INK, length=3)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _label(figure: Figure, diagram: Axes, histogram: Axes, lines: int) -> None:
    from matplotlib.patches import Patch

    height = figure.get_size_inches()[1]
    left = -0.65 / (PANEL * 0.92)  # the same for both, whatever their tick labels
    for axes, name in ((diagram, "accuracy"), (histogram, "share")):
        axes.set_ylabel(name, fontsize=LABEL, color=INK)
        axes.yaxis.set_label_coords(left, 0.5)
    figure.supxlabel("confidence", fontsize=LABEL, color=INK, y=(0.15 + LINE * lines) / height)
    handles = [Patch(label=name, **style) for name, style in zip(NAMES, (BAR, *GAPS.values()), strict=True)]
    figure.legend(
        handles=handles,
        loc="lower center",
        ncols=ceil(len(NAMES) / lines),
        frameon=False,
        fontsize=LABEL,
        labelcolor=INK,
    )


def _ece_text(ece: Spread) -> str:
    sd = "" if ece.sd is None else f" ± {100 * ece.sd:.1f}"
    return f"ECE {100 * ece.mean:.1f}{sd}%"
