"""The documentation page of a method, and the table of all of them, in Markdown: from the code alone."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from textwrap import fill

from torch import nn

from confide.core.knobs import Knob, knobs_of
from confide.losses.card import Card
from confide.losses.loss import Loss
from confide.report.curves import CLASSES, Curve
from confide.report.words import behaviour, scene, softening
from confide.testing import LOSS_CHECKS, variants

WIDTH = 120
FOLDER = "docs/methods"
DERIVED = "the-one-gradient.md"
SYMBOLS = (
    "z are the logits of a row, p = softmax(z), y is its true class and q its label as probabilities; CE is "
    "cross-entropy and C the number of classes. k and l run over classes, n and m over the rows of the batch."
)
SIDES = {
    "index": ("torch.arange(8)", "the numbers of these samples in the training set"),
    "image": ("torch.randn(2, 3, 16, 16)", "what the network saw, or anything else that tells pixels apart"),
}


def index_page(methods: Sequence[type[Loss]]) -> str:
    """All methods in one table."""
    rows = ((f"[{m.__name__}]({m.__name__}.md)", m.card.group, m.card.summary, _defaults(m)) for m in methods)
    return _joined(
        "# Methods",
        fill(
            "Every training loss of confide, each a drop-in for `torch.nn.CrossEntropyLoss`. A page has the formula, "
            "the knobs, what the method does to a label, and where its paper and the released code differ. "
            f"[The one gradient]({DERIVED}) derives what all of them do from one equation.",
            WIDTH,
        ),
        _table(("method", "group", "what it does", "knobs"), rows),
        "`confide show NAME` prints a page, `confide show --compare NAME NAME` sets methods side by side.",
        "## What every loss takes",
        "By keyword, beside its own knobs. `weight=`, a tensor with one number a class, multiplies that class's rows.",
        _knobs(Loss),
        "These pages are made from the code by `make docs`; only the derivation is written by hand.",
    )


def method_page(method: type[Loss], lines: Curve | str) -> str:
    """All that is known about one method; `lines` is its curve, or why it has none."""
    card, name = method.card, method.__name__
    source = f"../../src/{method.__module__.replace('.', '/')}.py"
    return _joined(
        f"# {name}: {card.title}",
        f"{card.cite} · {card.group}",
        _paragraph(f"{card.summary[0].upper()}{card.summary[1:]}. {inspect.getdoc(method)}"),
        f"```text\n{card.formula}\n```",
        _paragraph(SYMBOLS),
        "## Knobs",
        _knobs(method),
        "[Every loss](README.md#what-every-loss-takes) takes `weight`, `ignore_index`, `reduction` and more as well.",
        "## Behaviour",
        _list(_told(method, behaviour)),
        "## Where paper, table and code differ",
        _paragraph(card.differs),
        "## How it softens a label",
        *_softening(name, lines),
        f"[The one gradient]({DERIVED}#{name.lower()}) derives it.",
        "## Limits",
        _limits(method),
        *_exempt(method),
        "## Use",
        *(f"```python\n{example}```" for example in examples(method)),
        f"[All methods](README.md) · [source]({source}) · `confide show {name.lower()}`",
    )


def examples(method: type[Loss]) -> list[str]:
    """How it is used; once more for each setting that asks for more than logits and labels."""
    seen: dict[tuple[str, ...], dict[str, object]] = {}
    for settings, loss in _variants(method):
        seen.setdefault(tuple(_asks(loss)), settings)
    return [_example(method, settings, sides) for sides, settings in seen.items()]


def _example(method: type[Loss], settings: dict[str, object], sides: tuple[str, ...]) -> str:
    spatial = method.card.spatial
    knobs = {name: k.default for name, k in knobs_of(method).items() if name != "size" and k.default is not None}
    knobs = ({"size": 1000} if "index" in sides else {}) | dict(list(knobs.items())[:2]) | settings
    tell = "".join(f", {name}={name}" for name in sides)
    return "\n".join((
        "import torch",
        "import confide",
        "",
        f"criterion = confide.{method.__name__}({_written(knobs)})",
        f"logits = torch.randn({'2, 10, 16, 16' if spatial else '8, 10'}, requires_grad=True)",
        f"target = torch.randint(10, {'(2, 16, 16)' if spatial else '(8,)'})",
        *(f"{name} = {SIDES[name][0]}  # {SIDES[name][1]}" for name in sides),
        "",
        f"criterion(logits, target{tell}).backward()",
        f"criterion.terms(logits, target{tell})  # loss, cross-entropy, penalty, share of entries on which it acts",
        f"criterion.target(logits, target{tell})  # the label that it really trains toward",
        *(["criterion.epoch_end()  # after every epoch"] if "index" in sides else []),
        "",
    ))  # fmt: skip


def _asks(loss: Loss) -> Iterator[str]:
    """What it wants to be told beside logits and labels."""
    return (name for name in loss.example_side((2, 16, 16)) if name != "index" or loss.coupled)


def _variants(method: type[Loss]) -> Iterator[tuple[dict[str, object], Loss]]:
    """The method with its defaults and with every other choice of a knob: what was set, and the loss."""
    for make in variants(method):
        yield getattr(make, "keywords", {}), make()


def _told(method: type[Loss], items: Callable[[Card], Iterable[str]]) -> list[str]:
    """What a card says with the default knobs, and with which ones it says more or less."""
    usual = list(items(method.card))
    more: dict[str, list[str]] = {}
    less: dict[str, list[str]] = {}
    for settings, loss in _variants(method):
        found, setting = list(items(loss.traits)), f"`{_written(settings)}`"
        for item in (item for item in found if item not in usual):
            more.setdefault(item, []).append(setting)
        for item in (item for item in usual if item not in found):
            less.setdefault(item, []).append(setting)
    notes = {item: f" (Not with {_either(less[item])}.)" if item in less else "" for item in usual}
    return [item + note for item, note in notes.items()] + [f"With {_either(s)}: {item}" for item, s in more.items()]


def _exempt(method: type[Loss]) -> Iterator[str]:
    said = {check.__name__: (inspect.getdoc(check) or "").split("\n")[0] for check in LOSS_CHECKS}
    reasons = _told(
        method, lambda card: [f"`{name}`: *{said[name]}* Here: {why}." for name, why in card.exempt.items()]
    )
    if reasons:
        yield "## What does not hold"
        yield "It passes the whole conformance suite but for these checks, which cannot hold."
        yield _list(reasons)


def _limits(method: type[Loss]) -> str:
    if not method.limits:
        return "None: no setting makes it another method of this library."
    return "Bit for bit, in value and gradient:\n\n" + _list(
        f"with `{_written(settings)}` it is {_named(other)}" for settings, other in method.limits
    )


def _named(other: nn.Module) -> str:
    name = type(other).__name__
    return f"[`{' '.join(repr(other).split())}`]({name}.md)"


def _softening(name: str, lines: Curve | str) -> Iterator[str]:
    if isinstance(lines, str):
        yield _paragraph(f"It has no curve: {lines}.")
        return
    yield _paragraph(scene(lines))
    yield (
        f"![Penalty, f of the predicted class and f of another class of {name} along the distance d of the logit, "
        f"among {CLASSES} classes](images/{name}.svg)"
    )
    yield _list(softening(lines))


def _knobs(method: type[Loss]) -> str:
    knobs = knobs_of(method)
    if not knobs:
        return "None of its own."
    return _table(("knob", "default", "range", "meaning"), (_knob(name, knob) for name, knob in knobs.items()))


def _knob(name: str, knob: Knob) -> tuple[str, str, str, str]:
    return f"`{name}`", f"`{knob.default!r}`", f"`{knob.range}`" if knob.choices else knob.range, knob.doc


def _written(settings: Mapping[str, object]) -> str:
    """As in a call."""
    return ", ".join(f'{k}="{v}"' if isinstance(v, str) else f"{k}={v!r}" for k, v in settings.items())


def _defaults(method: type[Loss]) -> str:
    return "<br>".join(f"`{_written({name: knob.default})}`" for name, knob in knobs_of(method).items())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells may hold bars."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _list(items: Iterable[str]) -> str:
    return "\n".join(_paragraph(item, first="- ", rest="  ") for item in items)


def _paragraph(text: str, first: str = "", rest: str = "") -> str:
    """Wrapped; a line must not begin with what would make it an item of a list."""
    text = fill(
        " ".join(text.split()), WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return re.sub(r"\n *(?=([-+*>#=]|\d+[.)])(\s|$))", " ", text)


def _either(settings: Sequence[str]) -> str:
    return " or ".join(settings)


def _joined(*blocks: str) -> str:
    return "\n\n".join(blocks) + "\n"
