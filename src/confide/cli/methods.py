"""`confide methods`: the table of all methods, and the way from a name to its class."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from confide.cli.console import find_class, open_console
from confide.core.knobs import knobs_of
from confide.losses import ALL
from confide.losses.loss import Loss


def print_all() -> None:
    """The table of all methods."""
    open_console().print(table(ALL))


def find(name: str) -> type[Loss]:
    """The loss of that name."""
    return find_class(name, ALL, "method", "confide methods lists all")


def table(methods: Sequence[type[Loss]]) -> Table:
    """One row a method. Group and paper stand below name and summary, since five columns do not fit a terminal."""
    page = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, expand=True)
    page.add_column("Method", width=max(len(method.__name__) for method in methods))
    page.add_column("What it does", ratio=1)
    page.add_column("Knobs", no_wrap=True)
    for number, method in enumerate(methods):
        if number:
            page.add_row()
        page.add_row(*_row(method))
    return page


def _row(method: type[Loss]) -> tuple[Text, Text, Text]:
    card = method.card
    name = Text.assemble((method.__name__, "bold"), "\n", (card.group, "dim"))
    about = Text.assemble(card.summary, "\n", (card.cite, "dim"))
    return name, about, Text("\n").join(Text(f"{k} {knob.default}", "cyan") for k, knob in knobs_of(method).items())
