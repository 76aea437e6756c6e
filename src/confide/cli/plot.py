"""A line plot in a few rows of text: braille dots, or asterisks where the terminal has no braille."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from confide.cli.console import Glyphs

# Which bit of a braille character stands for the dot at (column, row) of its 2 x 4.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


@dataclass(frozen=True)
class Plot:
    """A line to draw; the axis is thick where `marked`. `width` and `height` count characters of the plane alone."""

    title: str
    x: Sequence[float]
    y: Sequence[float]
    marked: Sequence[bool]
    width: int
    height: int = 8

    @property
    def low(self) -> float:
        return min(0.0, *self.y)

    @property
    def high(self) -> float:
        return max(0.0, *self.y)


def draw(plot: Plot, glyphs: Glyphs) -> str:
    """Title, labelled plane, axis and its labels, all lines of one width."""
    labels = _y_labels(plot)
    margin = max(map(len, labels)) + 1
    plane = (_braille if glyphs.braille else _stars)(plot)
    rows = [
        f"{label:>{margin - 1}} {glyphs.tick if label else glyphs.wall}{row}"
        for label, row in zip(labels, plane, strict=True)
    ]
    pad = " " * margin
    lines = [pad + plot.title, *rows, pad + glyphs.corner + _axis(plot, glyphs), pad + " " + _x_labels(plot)]
    return "\n".join(line.ljust(margin + 1 + plot.width) for line in lines)


def _y_labels(plot: Plot) -> list[str]:
    labels = [""] * plot.height
    marks = {plot.high, plot.low, 0.0} if plot.high > plot.low else {0.0}
    for value in sorted(marks, key=lambda v: v == 0):  # zero last: it may take the place of another
        labels[_row(plot, value, plot.height)] = f"{value:.2g}"
    return labels


def _row(plot: Plot, value: float, rows: int) -> int:
    """The row of a value, counted from the top."""
    share = (value - plot.low) / ((plot.high - plot.low) or 1.0)
    return round((1 - share) * (rows - 1))


def _trace(plot: Plot, columns: int, rows: int) -> set[tuple[int, int]]:
    """The cells that the line passes, without gaps where it is steep."""
    heights = [_row(plot, plot.y[_sample(plot, c, columns)], rows) for c in range(columns)]
    cells = set()
    for column, (before, row) in enumerate(zip([heights[0], *heights], heights, strict=False)):
        start = row if before == row else before + (1 if row > before else -1)
        cells |= {(column, r) for r in range(min(start, row), max(start, row) + 1)}
    return cells


def _sample(plot: Plot, column: int, columns: int) -> int:
    return round(column * (len(plot.x) - 1) / (columns - 1))


def _braille(plot: Plot) -> list[str]:
    bits = [[0] * plot.width for _ in range(plot.height)]
    for column, row in _trace(plot, 2 * plot.width, 4 * plot.height):
        bits[row // 4][column // 2] |= _DOTS[column % 2][row % 4]
    return ["".join(chr(0x2800 + b) if b else " " for b in line) for line in bits]


def _stars(plot: Plot) -> list[str]:
    cells = _trace(plot, plot.width, plot.height)
    return ["".join("*" if (c, r) in cells else " " for c in range(plot.width)) for r in range(plot.height)]


def _axis(plot: Plot, glyphs: Glyphs) -> str:
    marked = (plot.marked[_sample(plot, c, plot.width)] for c in range(plot.width))
    return "".join(glyphs.thick if m else glyphs.thin for m in marked)


def _x_labels(plot: Plot) -> str:
    """The ends, and where the axis changes if there is room."""
    line = [" "] * plot.width
    last = len(plot.x) - 1
    changes = [i for i in range(last) if plot.marked[i] != plot.marked[i + 1]]
    for index in (0, last, *changes):
        label = f"{plot.x[index]:.3g}"
        start = min(round(index / last * (plot.width - 1)), plot.width - len(label))
        around = line[max(start - 1, 0) : start + len(label) + 1]
        if not "".join(around).strip():
            line[start : start + len(label)] = label
    return "".join(line)
