"""The generated part of docs/posthoc.md: every calibrator, from its card and its settings."""

from __future__ import annotations

from dataclasses import fields

from confide.posthoc import ALL, Calibrator
from confide.posthoc.settings import knobs_of

BEGIN = "<!-- begin: made by scripts/make_calibrator_page.py -->"
END = "<!-- end -->"
COMMON = ("ignore_index", "dim", "from_probs")


def page(text: str) -> str:
    """The document with its generated part made anew."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n\n{table()}\n{entries()}\n{END}{rest.split(END)[1]}"


def table() -> str:
    """One line a calibrator."""
    lines = [
        "| calibrator | map | take it for | keeps the prediction | folds into a layer | ONNX |",
        "|---|---|---|---|---|---|",
    ]
    for kind in ALL:
        card = kind.card
        marks = ("yes" if flag else "" for flag in (card.keeps_argmax, card.affine, card.onnx))
        name = f"[`{kind.__name__}`](#{kind.__name__.lower()})"
        lines.append(f"| {name} | {_cell(card.formula)} | {card.when} | {' | '.join(marks)} |")
    return "\n".join(lines) + "\n"


def entries() -> str:
    """A section a calibrator."""
    return "\n".join(_entry(kind) for kind in ALL)


def _entry(kind: type[Calibrator]) -> str:
    card = kind.card
    knobs = [(name, knob) for name, knob in knobs_of(kind).items() if name not in COMMON]
    lines = [f"### {kind.__name__}", "", f"{card.title} ({card.cite}). {card.differs}", ""]
    lines += [f"- `{name}={knob.default!r}`: {knob.doc} ({knob.range})" for name, knob in knobs]
    lines += [f"- `{f.name}={f.default!r}`: {f.metadata['doc']}" for f in fields(kind) if "doc" in f.metadata]
    lines += ["- Several labels share one map."] if card.pooled else []
    lines += ["- Needs the extra `posthoc`."] if card.extra else []
    lines += [f"- Not held to `{check}`: {reason}." for check, reason in card.exempt.items()]
    return "\n".join(lines).rstrip() + "\n"


def _cell(text: str) -> str:
    """Text that ends no cell."""
    return text.replace("|", "\\|")
