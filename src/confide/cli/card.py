"""`confide show`: all that is known about one method, and a plot of how it softens labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from confide.cli.console import INDENT, PROSE, Glyphs, glyphs, open_console, refuse
from confide.cli.plot import Plot, draw
from confide.core.knobs import knobs_of
from confide.losses.loss import Loss
from confide.report.curve_figures import draw as draw_curves
from confide.report.curves import Curve, Side, curve_of
from confide.report.figures import check_path
from confide.report.method_pages import FOLDER
from confide.report.words import behaviour, scene, softening

PLANE = (24, 40)  # the narrowest and the widest plot


def print_card(method: type[Loss], picture: Path | None = None) -> None:
    """The whole page of one method; its curves also go to a file, if there is to be one."""
    if picture is not None:
        check_path(picture)
    console, lines = open_console(), curve_of(method)
    for part in _parts(method, lines, console):
        console.print(part, width=min(console.width, PROSE))
    if picture is not None:
        if isinstance(lines, str):
            refuse(f"{method.__name__} has no curve to draw: {lines}")
        draw_curves({method.__name__: lines}, picture)
        console.print(Text(f"\nCurves: {picture}"), soft_wrap=True)


def _parts(method: type[Loss], lines: Curve | str, console: Console) -> Iterator[RenderableType]:
    card = method.card
    yield Text.assemble((method.__name__, "bold"), f"  {card.title}")
    yield Text(f"{card.cite} | {card.group}", "dim")
    yield ""
    yield Text(card.summary)
    yield ""
    yield Padding(Text(card.formula, "green"), INDENT, expand=False)
    yield from _section("Knobs", _knobs(method))
    yield from _section("Behaviour", *map(Text, behaviour(card)))
    yield from _section("Where paper, table and code differ", Text(card.differs))
    yield from _section("How it softens a label", *_softening(lines, console))
    yield Text(f"\nMore, with an example: {FOLDER}/{method.__name__}.md", "dim")


def _section(title: str, *parts: RenderableType) -> Iterator[RenderableType]:
    yield ""
    yield Text(title, "bold")
    for part in parts:
        yield Padding(part, INDENT, expand=False)


def _knobs(method: type[Loss]) -> RenderableType:
    if not knobs_of(method):
        return "none"
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, knob in knobs_of(method).items():
        grid.add_row(Text(name, "cyan"), Text(str(knob.default)), Text(knob.range, "dim"), Text(knob.doc))
    return grid


def _softening(lines: Curve | str, console: Console) -> Iterator[RenderableType]:
    if isinstance(lines, str):
        yield Text(f"It has no curve: {lines}.")
        return
    signs = glyphs(console)
    yield Text(scene(lines), "dim")
    if any(lines.predicted.acts + lines.other.acts):
        yield Text(" ")
        yield _planes(lines, signs, min(console.width, PROSE))
        yield Text(f"across: d; C = 1 where the axis is thick ({signs.thick * 3})", "dim")
        yield Text(" ")
    yield from map(Text, softening(lines))


def _planes(lines: Curve, signs: Glyphs, width: int) -> RenderableType:
    low, high = PLANE
    size = max(low, min(high, width // 2 - 11))
    sides = (("f, predicted class", lines.predicted), ("f, another class", lines.other))
    return Columns([_plane(title, lines, side, size, signs) for title, side in sides], padding=(0, 3))


def _plane(title: str, lines: Curve, side: Side, size: int, signs: Glyphs) -> Text:
    return Text(draw(Plot(title, lines.distance, side.f, side.acts, size), signs), no_wrap=True)
