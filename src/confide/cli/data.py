"""`confide data`: what is in a data set, before anything is trained on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

from confide.cli.console import PROSE, glyphs, open_console
from confide.core.errors import InputError, MissingExtra
from confide.data.sets.catalogue import SETS, read
from confide.data.sets.download import SOURCES, download
from confide.data.split import Part, Rows, Split, label_counts
from confide.report.contact_sheet import contact_sheet
from confide.report.figures import check_path

BAR, MOST, SAMPLE = 20, 30, 100  # characters of a bar; classes that are listed; masks that are looked at


def print_all() -> None:
    """Every name, and what it expects."""
    page = Table(box=None, pad_edge=False, show_header=False)
    for name, entry in SETS.items():
        page.add_row(Text(name, "cyan"), entry.about, "[dim]--download[/dim]" if name in SOURCES else "")
    open_console().print(page)


def run(name: str, root: Path | None, sheet: Path | None, draw: bool, fetch: bool) -> None:
    """Read, then show, with a picture where there are images."""
    if sheet is not None:
        check_path(sheet)
    if fetch and root is not None:
        download(name, root)
    split = _read(name, root, fetch)
    console = open_console()
    for part in (_head(name, split), "", _sizes(split), "", *_classes(split, console), *_text(split)):
        console.print(part, width=min(console.width, PROSE))
    if draw and (sheet is not None or _first(split.train).dim() == 3):
        console.print(Text(f"\nContact sheet: {_drawn(split, sheet, name)}"), soft_wrap=True)


def _read(name: str, root: Path | None, fetched: bool) -> Split:
    try:
        return read(name, root)
    except InputError as error:
        if fetched or name not in SOURCES:
            raise
        raise InputError(f"{error}. It can be fetched: confide data {name} --root DIR --download") from error


def _drawn(split: Split, sheet: Path | None, name: str) -> str:
    """Where the picture is; one that nobody asked for may be missing."""
    path = sheet or Path(f"confide-{name}.png")
    try:
        contact_sheet(split, path)
    except MissingExtra as error:
        if sheet is not None:
            raise
        return f"none, since {error}"
    return str(path)


def _first(part: Rows) -> Tensor:
    return part.inputs[0] if isinstance(part, Part) else part.read(part.items[0], None)[0]


def _head(name: str, split: Split) -> Text:
    said = f"{split.how[:1].upper()}{split.how[1:]}." if split.how else ""
    return Text.assemble((f"{name}: {len(split.classes)} classes", "bold"), (f"\n{said}" if said else "", "dim"))


def _parts(split: Split) -> Mapping[str, Rows]:
    return {"train": split.train, "val": split.val, "test": split.test}


def _sizes(split: Split) -> Table:
    page = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title in ("Part", "Rows", "Subjects", "Shape of a row", "Kept"):
        page.add_column(title, justify="right" if title in ("Rows", "Subjects") else "left", no_wrap=True)
    for name, part in _parts(split).items():
        first = _first(part)
        shape = f"{' x '.join(map(str, first.shape))} {str(first.dtype).removeprefix('torch.')}"
        kept = "in memory" if isinstance(part, Part) else "read when needed"
        same = " (is test)" if name == "val" and part is split.test else ""
        page.add_row(name + same, f"{len(part):,}", f"{len(set(part.units)):,}" if part.units else "", shape, kept)
    return page


def _classes(split: Split, console: Console) -> list[Table | Text]:
    """How often each class occurs, as share of its part; bars are those of train."""
    counts = {name: label_counts(part) or _sampled(part) for name, part in _parts(split).items()}
    if not counts["train"]:
        return [Text("Targets are soft, so there are no classes to count.", "dim")]
    totals = {name: sum(values.values()) for name, values in counts.items()}
    page = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    page.add_column("Class", no_wrap=True)
    for name in counts:
        page.add_column(f"{name}, %", justify="right", no_wrap=True)
    page.add_column("train", no_wrap=True)
    labels = [*range(len(split.classes))]
    named = dict(enumerate(split.classes))
    if split.ignore_index in counts["train"]:
        labels.append(split.ignore_index)
        named[split.ignore_index] = f"(ignored: {split.ignore_index})"
    highest = max(counts["train"].values())
    mark = "━" if glyphs(console).braille else "="
    for label in labels[:MOST]:
        shares = [_share(counts[name].get(label, 0), totals[name]) for name in counts]
        page.add_row(named[label], *shares, mark * round(BAR * counts["train"].get(label, 0) / highest))
    more = len(labels) - MOST
    notes = [f"and {more:,} more classes"] if more > 0 else []
    if not label_counts(split.train):
        notes.append(f"Counted in {SAMPLE} masks of each part, since masks are read when needed.")
    return [page, *(Text(note, "dim") for note in notes)]


def _sampled(part: Rows) -> dict[int, int]:
    """How often each label occurs in some rows of a stream, from all over it."""
    if isinstance(part, Part):
        return {}
    counts: Counter[int] = Counter()
    for item in part.items[:: -(-len(part) // SAMPLE)]:
        inputs, targets = part.read(item, None)
        counts.update(label_counts(Part(inputs[None], targets[None])))
    return dict(counts)


def _share(count: int, total: int) -> str:
    return f"{100 * count / total:.2f}" if total else "-"


def _text(split: Split) -> list[Text]:
    """The first words of a text, since a picture would not show them."""
    if not split.vocabulary or not isinstance(split.train, Part):
        return []
    words = [split.vocabulary[i] for i in split.train.inputs[0].tolist() if i][:12]
    return [Text(f"\n{len(split.vocabulary):,} words; a text of train has: {' '.join(words)} ...", "dim")]
