"""`confide show --compare`: what several methods do to the same logits, in one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from confide.cli.console import PROSE, Glyphs, glyphs, open_console, refuse
from confide.cli.methods import find
from confide.report.curve_figures import MOST, draw
from confide.report.curves import CLASSES, Curve, Side, confidence, curve_of
from confide.report.figures import check_path
from confide.report.words import near_one

DISTANCES = (1, 2, 4, 6, 8, 10, 15, 20)


def print_comparison(names: Sequence[str], meant: bool, picture: Path | None) -> None:
    """The page; the curves also go to a file, if there is to be one."""
    if not meant:
        refuse(f"show explains one method; for several write confide show --compare {' '.join(names)}")
    methods = list(dict.fromkeys(find(name) for name in names))
    if len(methods) < 2:
        refuse(f"--compare needs two methods or more, such as confide show --compare {names[0]} crossentropy")
    if picture is not None:
        check_path(picture)
        if len(methods) > MOST:
            refuse(f"one picture has room for {MOST} methods, not for {len(methods)}: leave some out, or --save")
    found = {method.__name__: curve_of(method) for method in methods}
    curves = {name: lines for name, lines in found.items() if isinstance(lines, Curve)}
    console = open_console()
    for part in _parts(curves, {n: why for n, why in found.items() if isinstance(why, str)}, glyphs(console)):
        console.print(part, width=min(console.width, PROSE))
    if picture is not None:
        draw(curves, picture)
        console.print(Text(f"\nCurves: {picture}"), soft_wrap=True)


def _parts(curves: Mapping[str, Curve], missing: Mapping[str, str], signs: Glyphs) -> Iterator[RenderableType]:
    yield Text(
        f"A right prediction among {CLASSES} classes: its logit is d, the others are 0. f > 0 softens: it lowers the "
        "target of the predicted class and raises those of the others. Knobs are at their defaults.",
        "dim",
    )
    yield ""
    yield _table(curves, signs)
    yield Text(f"{signs.dot} where C = 0: nothing is done. 0.000: less than 0.0005.", "dim")
    yield ""
    yield Text("Up to which distance the true logit is pulled up", "bold")
    yield _rests(curves)
    for words in dict.fromkeys(lines.scene.words for lines in curves.values() if lines.scene.words):
        names = ", ".join(name for name, lines in curves.items() if lines.scene.words == words)
        yield Text(f"\n{names}: {words}")
    for name, why in missing.items():
        yield Text(f"\n{name} has no curve: {why}.")


def _table(curves: Mapping[str, Curve], signs: Glyphs) -> Table:
    page = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 0, 0, 1))
    page.add_column("d", no_wrap=True)
    for d in DISTANCES:
        page.add_column(f"{d}", justify="right", no_wrap=True)
    page.add_row("confidence", *(_share(confidence(d)) for d in DISTANCES), style="dim")
    for title, first in (("f, predicted class", True), ("f, another class", False)):
        page.add_row()
        page.add_row(Text(title, "bold"))
        for name, lines in curves.items():
            page.add_row(name, *_values(lines.predicted if first else lines.other, lines, signs))
    return page


def _values(side: Side, lines: Curve, signs: Glyphs) -> Iterator[str]:
    for d in DISTANCES:
        i = lines.at(d)
        yield f"{side.f[i]:.3f}".replace("-0.000", "0.000") if side.acts[i] else signs.dot


def _share(p: float) -> str:
    return f"{p:.3f}" if p < 0.9995 else "~1"


def _rests(curves: Mapping[str, Curve]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, lines in curves.items():
        where = f"past {lines.distance[-1]:g}" if lines.rest is None else f"{lines.rest:.2f}"
        grid.add_row(name, where, "" if lines.rest is None else f"confidence {near_one(lines.confidence)}")
    return grid
