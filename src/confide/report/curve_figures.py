"""The curves of one method, or of several on the same logits with common axes, as a PNG or SVG file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import asinh
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from confide.core.errors import KnobError
from confide.report.curves import CLASSES, Curve
from confide.report.figures import DPI, FAINT, INK, LABEL, SMALL, TITLE, check_path, figure_class, save, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 8  # methods in one picture
WIDTH, HEIGHT = 3.1, 2.1  # of a panel, in inches
LEFT, TOP, AXIS, ROW = 1.0, 0.55, 0.75, 0.26  # of the margins and of a line of text
LETTERS = 12  # of a note to an inch
FLAT, NOTHING, LINEAR = 8, 1e-4, 0.01  # a line that much lower than another looks flat, unless it is nothing anyway
ROOM = 0.1  # of a label, as a share of the axis
TICKS: tuple[float, ...] = (-10, -1, -0.1, -LINEAR, 0, LINEAR, 0.1, 1, 10)
BOLD: dict[str, Any] = {"fontsize": TITLE, "color": INK, "fontweight": "bold"}
MAIN: dict[str, Any] = {"color": "#0072B2", "linewidth": 2.2}
SECOND: dict[str, Any] = {"color": "#D55E00", "linewidth": 1.8, "linestyle": (0, (4, 2))}
AREA: dict[str, Any] = {"facecolor": "#56B4E9", "alpha": 0.22, "linewidth": 0}
REST: dict[str, Any] = {"color": INK, "linewidth": 1.2, "linestyle": (0, (1, 2))}


class Quantity(NamedTuple):
    """What a panel shows."""

    name: str
    line: Callable[[Curve], Sequence[float]]
    acts: Callable[[Curve], Sequence[bool]]
    second: Callable[[Curve], Sequence[float]]  # drawn where it differs


QUANTITIES = (
    Quantity("penalty", lambda it: it.penalty, lambda it: it.predicted.acts, lambda it: it.penalty),
    Quantity("f, predicted class", lambda it: it.predicted.f, lambda it: it.predicted.acts, lambda it: it.predicted.f),
    Quantity("f, another class", lambda it: it.other.f, lambda it: it.other.acts, lambda it: it.first.f),
)


def draw(curves: Mapping[str, Curve], path: Path | str) -> None:
    """A column of panels for each method, by its name; those of a single method stand side by side."""
    path = Path(path)
    check_path(path)
    if not 0 < len(curves) <= MOST:
        raise KnobError(f"cannot draw {len(curves)} methods: one picture has room for 1 to {MOST}")
    alone = len(curves) == 1
    rows, columns = (1, len(QUANTITIES)) if alone else (len(QUANTITIES), len(curves))
    width = LEFT + (WIDTH + 0.5 * alone) * columns
    notes = _notes(curves, width)
    below = AXIS + ROW * (len(notes) + 1.5)
    top = TOP + 0.3 * alone
    height = top + HEIGHT * rows + below
    figure = figure_class()(figsize=(width, height), dpi=DPI, facecolor="white")
    grid = figure.subplots(rows, columns, sharex=True, sharey=False if alone else "row", squeeze=False)
    figure.subplots_adjust(LEFT / width, below / height, 1 - 0.2 / width, 1 - top / height, 0.3 if alone else 0.16, 0.2)
    for row, quantity in enumerate(QUANTITIES):
        for column, lines in enumerate(curves.values()):
            axes = grid[0, row] if alone else grid[row, column]
            _panel(axes, quantity, lines)
            if alone:
                axes.set_title(quantity.name, fontsize=LABEL, color=INK, loc="left", pad=8)
            elif not column:
                axes.set_ylabel(quantity.name, fontsize=LABEL, color=INK)
        if not alone and _uneven(quantity, list(curves.values())):
            _bend(grid[row, 0], quantity, list(curves.values()))
    for name, axes in zip(curves, grid[0], strict=False):
        if alone:
            figure.text(LEFT / width, 1 - 0.35 / height, name, **BOLD)
        else:
            axes.set_title(name, pad=10, **BOLD)
    _captions(figure, curves, notes, height)
    save(figure, path)


def _panel(axes: Axes, quantity: Quantity, lines: Curve) -> None:
    _shade(axes, lines.distance, quantity.acts(lines))
    if lines.rest is not None:
        axes.axvline(lines.rest, **REST)
    second = quantity.second(lines)
    if second != quantity.line(lines):
        axes.plot(lines.distance, second, **SECOND)
    axes.plot(lines.distance, quantity.line(lines), **MAIN)
    axes.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_xlim(lines.distance[0], lines.distance[-1])
    if not any(quantity.line(lines)) and not any(second):
        axes.set_ylim(-1, 1)
    tidy(axes)


def _uneven(quantity: Quantity, curves: Sequence[Curve]) -> bool:
    """Whether common linear axes would flatten the weaker methods."""
    heights = [max(map(abs, (*quantity.line(lines), *quantity.second(lines)))) for lines in curves]
    heights = [height for height in heights if height > NOTHING]
    return bool(heights) and max(heights) > FLAT * min(heights)


def _bend(axes: Axes, quantity: Quantity, curves: Sequence[Curve]) -> None:
    """Let the vertical axis grow like a logarithm, but for small numbers."""
    from matplotlib.ticker import FuncFormatter

    lines = [line(curve) for curve in curves for line in (quantity.line, quantity.second)]
    low, high = min(map(min, lines)), max(map(max, lines))
    axes.set_yscale("asinh", linear_width=LINEAR)
    axes.set_ylim(1.5 * low if low < -NOTHING else -LINEAR / 2, max(1.5 * high, LINEAR / 2))
    axes.set_yticks(_apart([tick for tick in TICKS if low <= tick <= high], *axes.get_ylim()))
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))


def _apart(ticks: list[float], low: float, high: float) -> list[float]:
    """0, and those of the others whose labels have room, the largest first."""

    def place(y: float) -> float:
        return (asinh(y / LINEAR) - asinh(low / LINEAR)) / (asinh(high / LINEAR) - asinh(low / LINEAR))

    kept = [0.0]
    for tick in sorted(ticks, key=abs, reverse=True):
        kept += [tick] if min(abs(place(tick) - place(other)) for other in kept) > ROOM else []
    return kept


def _shade(axes: Axes, distance: Sequence[float], acts: Sequence[bool]) -> None:
    """Mark where C = 1."""
    starts = [i for i, on in enumerate(acts) if on and (not i or not acts[i - 1])]
    ends = [i for i, on in enumerate(acts) if on and (i + 1 == len(acts) or not acts[i + 1])]
    for start, end in zip(starts, ends, strict=True):
        axes.axvspan(distance[start], distance[end], **AREA)


def _notes(curves: Mapping[str, Curve], width: float) -> list[str]:
    """What is around the prediction, for methods that look there; one note for all that see the same."""
    seen: dict[str, list[str]] = {}
    for name, lines in curves.items():
        if lines.scene.words:
            seen.setdefault(lines.scene.words, []).append(name)
    notes = [f"{', '.join(names)}: {words[0].lower()}{words[1:]}" for words, names in seen.items()]
    if any(_uneven(quantity, list(curves.values())) for quantity in QUANTITIES):
        notes.append(f"Uneven vertical axes are linear near 0, and logarithmic beyond {LINEAR:g}.")
    return [line for note in notes for line in wrap(note, int(width * LETTERS))]


def _captions(figure: Figure, curves: Mapping[str, Curve], notes: list[str], height: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure.supxlabel(
        f"d: how far the predicted logit, which is right, lies above the {CLASSES - 1} others (default knobs)",
        fontsize=LABEL, color=INK, y=(ROW * (len(notes) + 1.5) + 0.05) / height,
    )  # fmt: skip
    handles: list[Any] = []
    if any(any(lines.predicted.acts + lines.other.acts) for lines in curves.values()):
        handles.append(Patch(label="C = 1", **AREA))
    if any(lines.rest is not None for lines in curves.values()):
        handles.append(Line2D([], [], label="the true logit comes to rest", **REST))
    apart = dict.fromkeys(lines.scene.first for lines in curves.values() if lines.first != lines.other)
    handles += [Line2D([], [], label=f"f, {first[0].lower()}{first[1:]}", **SECOND) for first in apart]
    figure.legend(
        handles=handles, loc="lower center", ncols=len(handles), frameon=False, fontsize=SMALL, labelcolor=INK,
        bbox_to_anchor=(0.5, ROW * len(notes) / height),
    )  # fmt: skip
    for number, note in enumerate(reversed(notes)):
        figure.text(0.02, (ROW * number + 0.08) / height, note, fontsize=SMALL - 1, color=INK)
