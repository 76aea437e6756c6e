"""The same figures as matplotlib axes, for papers and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.report.check.numbers import Curve, Dots, Figure, Reliability, Shares, figures
from confide.report.check.svg import compact
from confide.report.figures import INK, figure_class, save, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACCENT, SOFT, QUIET = "#0b6aa8", "#dfe4e8", "#626a73"
FORMATS = (".svg", ".pdf", ".png")
SIZES = {"reliability": (3.6, 3.4), "confidence": (3.6, 2.6), "risk_coverage": (3.6, 2.6)}
NAME, LINE = 3.6, 0.24  # inches: the width of a dot plot, the height of a line
SMALL, TEXT = 8, 9
DPI = 300


def draw(axes: Axes, figure: Figure) -> None:
    """Any of the figures."""
    kinds: dict[type, Callable[[Axes, Any], None]] = {
        Reliability: reliability,
        Shares: shares,
        Curve: curve,
        Dots: dots,
    }
    kinds[type(figure)](axes, figure)
    if figure.title:
        axes.set_title(figure.title, fontsize=TEXT, color=INK)
    tidy(axes)
    axes.tick_params(labelsize=SMALL)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(fontsize=TEXT, color=INK)


def reliability(axes: Axes, figure: Reliability) -> None:
    """Bars, their points with intervals, and how many predictions each holds."""
    for bar in figure.bars:
        axes.bar(bar.lower, bar.accuracy, bar.upper - bar.lower, align="edge", facecolor=SOFT, edgecolor="white")
        spot = axes.get_xaxis_transform()
        axes.text(
            (bar.lower + bar.upper) / 2, 1.0, compact(bar.count), fontsize=5, color=QUIET, ha="center", transform=spot
        )
    axes.plot((0, 1), (0, 1), color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
    x, y = [bar.confidence for bar in figure.bars], [bar.accuracy for bar in figure.bars]
    below = [max(bar.accuracy - bar.low, 0.0) for bar in figure.bars]
    above = [max(bar.high - bar.accuracy, 0.0) for bar in figure.bars]
    axes.errorbar(x, y, (below, above), fmt="o", color=ACCENT, markersize=3.5, elinewidth=1, capsize=2, clip_on=False)
    axes.set(xlim=(0, 1), ylim=(0, 1.03), xlabel="confidence", ylabel="accuracy")
    if figure.ece is not None:
        axes.text(0.03, 0.94, f"ECE {figure.ece:.4f}", fontsize=TEXT, color=INK, transform=axes.transAxes)


def shares(axes: Axes, figure: Shares) -> None:
    """The histogram, with accuracy and mean confidence."""
    for lower, upper, _, share in figure.bars:
        axes.bar(lower, share, upper - lower, align="edge", facecolor=SOFT, edgecolor="white", linewidth=0.2)
    if figure.accuracy is not None and figure.confidence is not None:
        axes.axvline(figure.accuracy, color=ACCENT, linewidth=1.2, label="accuracy")
        axes.axvline(figure.confidence, color=QUIET, linewidth=1.2, linestyle=(0, (4, 3)), label="mean confidence")
        axes.legend(fontsize=SMALL, frameon=False, loc="best")
    axes.set(xlim=(0, 1), xlabel="confidence", ylabel="share of predictions")


def curve(axes: Axes, figure: Curve) -> None:
    """Risk against coverage."""
    coverage, risk = [point[0] for point in figure.points], [point[1] for point in figure.points]
    axes.plot(coverage, risk, color=ACCENT, linewidth=1.5)
    axes.fill_between(coverage, risk, color=ACCENT, alpha=0.12, linewidth=0)
    axes.set(xlim=(0, 1), ylim=(0, None), xlabel="coverage", ylabel="error rate")


def dots(axes: Axes, figure: Dots) -> None:
    """One line for each dot, the first on top."""
    for row, dot in enumerate(figure.dots):
        shade = 0.45 if dot.faint else 1.0
        if dot.low is not None and dot.high is not None:
            axes.plot((dot.low, dot.high), (row, row), color=ACCENT, linewidth=1.2, alpha=shade)
        axes.plot(dot.value, row, "o", color=ACCENT, markersize=4, alpha=shade)
    if figure.at is not None:
        axes.axvline(figure.at, color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(figure.dots)), [dot.name for dot in figure.dots])
    axes.set(ylim=(len(figure.dots) - 0.5, -0.5), xlabel=figure.axis)
    axes.locator_params(axis="x", nbins=4)


def write_all(data: Mapping[str, Any], folder: Path) -> list[Path]:
    """Every figure as .svg, .pdf and .png; several inputs side by side with common axes."""
    folder.mkdir(parents=True, exist_ok=True)
    several = len(data["checks"]) > 1
    found = [figures(c["result"], c["name"] if several else "", c["class_names"]) for c in data["checks"]]
    paths = []
    for name in found[0]:
        panels = [one[name] for one in found if name in one]
        for ending in FORMATS:
            paths.append(folder / f"{name}{ending}")
            _write(panels, name, paths[-1])
    return paths


def _write(panels: list[Figure], name: str, path: Path) -> None:
    lines = max((len(panel.dots) for panel in panels if isinstance(panel, Dots)), default=0)
    width, height = SIZES.get(name, (NAME, 1.0 + LINE * lines))
    drawn = figure_class()(figsize=(width * len(panels), height), dpi=DPI, facecolor="white", layout="constrained")
    grid = drawn.subplots(1, len(panels), sharey=name != "groups" and not lines, squeeze=False)
    for axes, panel in zip(grid[0], panels, strict=True):
        draw(axes, panel)
    save(drawn, path)
