"""`confide show`: all that is known about one method, and a plot of how it softens labels."""

from __future__ import annotations

from collections.abc import Iterator

from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from confide.cli.console import Glyphs, glyphs, open_console
from confide.cli.plot import Plot, draw
from confide.core.knobs import knobs_of
from confide.losses.loss import Card, Loss
from confide.report.table import CLASSES, Curve, Side, curve

INDENT = (0, 0, 0, 2)
PROSE = 100  # the widest that running text may get
PLANE = (24, 40)  # the narrowest and the widest plot


def print_card(method: type[Loss]) -> None:
    """The whole page of one method."""
    console = open_console()
    for part in _parts(method, console):
        console.print(part, width=min(console.width, PROSE))


def _parts(method: type[Loss], console: Console) -> Iterator[RenderableType]:
    card = method.card
    yield Text.assemble((method.__name__, "bold"), f"  {card.title}")
    yield Text(f"{card.cite} | {card.group}", "dim")
    yield ""
    yield Text(card.summary)
    yield ""
    yield Padding(Text(card.formula, "green"), INDENT, expand=False)
    yield from _section("Knobs", _knobs(method))
    yield from _section("Behaviour", *_behaviour(card))
    yield from _section("Where paper, table and code differ", Text(card.differs))
    yield from _section("How it softens a label", *_softening(curve(method()), console))


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


def _behaviour(card: Card) -> Iterator[Text]:
    yield Text(
        "Adding a constant to all logits of a row changes nothing."
        if card.invariant
        else "Adding a constant to all logits of a row changes the loss: it looks at their absolute size."
    )
    yield Text(
        "The gradient of a row sums to zero: nothing pushes all logits together."
        if card.balanced
        else "The gradient of a row does not sum to zero: all logits may drift together."
    )


def _softening(lines: Curve, console: Console) -> Iterator[RenderableType]:
    signs = glyphs(console)
    yield Text(
        f"A right prediction among {CLASSES} classes: its logit is d, the others are 0. f > 0 softens: it lowers the "
        "target of the predicted class and raises those of the others.",
        "dim",
    )
    if any(lines.predicted.acts + lines.other.acts):
        yield Text(" ")
        yield _planes(lines, signs, min(console.width, PROSE))
        yield Text(f"across: d; C = 1 where the axis is thick ({signs.thick * 3})", "dim")
        yield Text(" ")
    else:
        yield Text("f = 0 and C = 0 everywhere: nothing is softened.")
    yield from _words(lines)


def _planes(lines: Curve, signs: Glyphs, width: int) -> RenderableType:
    low, high = PLANE
    size = max(low, min(high, width // 2 - 11))
    sides = (("f, predicted class", lines.predicted), ("f, another class", lines.other))
    return Columns([_plane(title, lines, side, size, signs) for title, side in sides], padding=(0, 3))


def _plane(title: str, lines: Curve, side: Side, size: int, signs: Glyphs) -> Text:
    return Text(draw(Plot(title, lines.distance, side.f, side.acts, size), signs), no_wrap=True)


def _words(lines: Curve) -> Iterator[Text]:
    if lines.lowest != lines.other:
        yield Text(
            f"The lowest logit (the first of equals) is treated apart: there f reaches {max(lines.lowest.f):.2g} "
            f"where the other classes have {max(lines.other.f):.2g}."
        )
    if lines.rest is None:
        yield Text(
            f"The true logit is still pulled up at d = {lines.distance[-1]:g}, "
            f"where the confidence is {_near_one(lines.confidence)}."
        )
    else:
        yield Text(
            f"The true logit is pulled up until d = {lines.rest:.2f}, where the confidence is "
            f"{_near_one(lines.confidence)}, and no further."
        )


def _near_one(p: float) -> str:
    return f"{p:.4f}" if p < 0.99995 else f"within {1 - p:.1g} of 1"
