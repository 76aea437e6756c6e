"""`confide demo`: train, compare, draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from confide.cli.console import glyphs, open_console
from confide.data import fashion
from confide.report import figures
from confide.report.table import Row, Spread, tabulate, verdict
from confide.study import demo


def run(seeds: int | None, epochs: int | None, output: Path) -> None:
    """Refuse a bad path before any work, then train and show table, verdict and figure."""
    figures.check_path(output)
    chosen = demo.SEEDS if seeds is None else tuple(range(seeds))
    setting = demo.SETTING if epochs is None else replace(demo.SETTING, epochs=epochs)
    with _one_thread():
        runs = _train(chosen, setting)
    rows = tabulate(runs)
    figures.reliability_diagrams(figures.panels(runs), output)
    console = open_console()
    console.print(_table(rows, glyphs(console).plus_minus))
    console.print()
    console.print(Text(verdict(rows)))
    console.print(Text(f"Reliability diagrams: {output}"), soft_wrap=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Matrices this small gain nothing from more threads, which on a busy machine mostly wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _train(seeds: tuple[int, ...], setting: demo.Setting) -> list[demo.Run]:
    """Progress goes to stderr, so that a pipe holds results only."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Loading", total=1.0)

        def show(method: str, seed: int, share: float) -> None:
            progress.update(task, completed=share, description=f"{method}, seed {seed}")

        return list(demo.run(fashion.load(), seeds=seeds, setting=setting, on_progress=show))


def _table(rows: list[Row], plus_minus: str) -> Table:
    page = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, caption=_caption(rows[0].seeds, plus_minus))
    page.add_column("Method", no_wrap=True)
    for title in ("Accuracy, %", "NLL", "ECE, %"):
        page.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        page.add_row(
            row.method,
            _number(row.accuracy, plus_minus, 100, 1),
            _number(row.nll, plus_minus, 1, 3),
            _number(row.ece, plus_minus, 100, 1),
        )
    return page


def _caption(seeds: int, plus_minus: str) -> str:
    return "one seed" if seeds == 1 else f"mean {plus_minus} standard deviation over {seeds} seeds"


def _number(value: Spread, plus_minus: str, scale: int, digits: int) -> str:
    mean = f"{scale * value.mean:.{digits}f}"
    return mean if value.sd is None else f"{mean} {plus_minus} {scale * value.sd:.{digits}f}"
