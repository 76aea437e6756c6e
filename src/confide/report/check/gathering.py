"""One pass over saved predictions: an audit, the surest errors, and what is needed to pair it with another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast
from zipfile import is_zipfile

import numpy as np
import torch
from numpy.typing import NDArray

from confide.core.errors import InputError
from confide.data.opening import open_predictions
from confide.data.predictions import Chunk, Predictions
from confide.metrics.audit.audit import Audit
from confide.report.check.misses import Misses
from confide.report.check.temperature import Sample

TORCH_IGNORES = -100
IDS = ("case", "id", "image_id", "image", "name", "file", "filename", "path", "key", "uid")
BLOCKS = 64  # into which the rows of two files are dealt, so that both are resampled alike
Tick = Callable[[int], None]  # told how many predictions were read


@dataclass(frozen=True)
class Options:
    """What the caller says about the predictions; None and empty where it is left to the file."""

    groups: tuple[str, ...] = ()
    unit: str | None = None
    ignore_index: int | None = None
    region: str = "all"
    inputs: str | None = None
    dim: int | None = None
    scores: str | None = None
    labels: str | None = None
    labels_from: Path | None = None


@dataclass(eq=False)
class Gathered:
    """One file or folder, looked at. Saved statistics have no predictions, misses or pairing."""

    path: Path
    audit: Audit
    said: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    found: Predictions | None = None
    misses: Misses | None = None
    sample: Sample | None = None
    unit: str = ""  # what the units are, in words
    pairing: Audit | None = None
    labels_digest: str = ""
    name: str = field(default="")

    def __post_init__(self) -> None:
        self.name = self.name or self.path.name


def is_saved(path: Path) -> bool:
    """Whether a file holds statistics that `Audit.save` wrote, and no predictions."""
    if path.suffix != ".npz" or not path.is_file() or not is_zipfile(path):
        return False
    with np.load(path, allow_pickle=False) as stored:
        return "header" in stored.files and any(name.startswith("sums/") for name in stored.files)


def open_checked(path: Path, options: Options) -> Predictions:
    """The predictions; refused where there is nothing to hold them against."""
    found = open_predictions(
        path,
        inputs=options.inputs,
        dim=options.dim,
        ignore_index=options.ignore_index,
        scores=options.scores,
        labels=options.labels,
        labels_from=options.labels_from,
    )
    if not found.labelled:
        raise InputError(f"{str(path)!r} has no labels, and without them nobody knows which predictions are right")
    stray = {value: share for value, share in found.ignored.items() if value != TORCH_IGNORES}
    if stray and options.ignore_index is None:
        value, share = max(stray.items(), key=lambda item: item[1])
        raise InputError(
            f"{str(path)!r}: label {value} ({share:.1%} of the labels) is no class of {found.classes}; pass "
            f"--ignore-index {value} to leave it out"
        )
    for name in (*options.groups, *((options.unit,) if options.unit else ())):
        if name not in found.columns:
            have = ", ".join(found.columns) or "none"
            raise InputError(f"{str(path)!r} has no column {name!r} with one value a row; it has {have}")
    return found


def gather(found: Predictions, options: Options, tick: Tick = lambda _: None, paired: bool = False) -> Gathered:
    """Read everything once. `paired` also gathers what a paired comparison needs."""
    ignored = TORCH_IGNORES if options.ignore_index is None else options.ignore_index
    made = Gathered(found.path, _audit(found, ignored, options.region), found.said, found.class_names, found)
    made.unit = _unit_words(found, options)
    made.sample = None if found.soft else Sample(found.items, found.classes, ignored, options.region)
    made.misses = None if _dense(found) else Misses(ignored)
    made.pairing = _audit(found, ignored, options.region) if paired and not made.unit else None
    labels = hashlib.sha256()
    for chunk in found.chunks(whole=options.region.startswith("boundary")):
        _take(made, chunk, options)
        if paired and chunk.labels is not None:
            labels.update(np.ascontiguousarray(chunk.labels.numpy()).tobytes())
        tick(chunk.scores.numel() // found.classes)
    made.labels_digest = labels.hexdigest() if paired else ""
    return made


def saved(path: Path, options: Options) -> Gathered:
    """Statistics from a file; options that need predictions are refused."""
    audit = Audit.load(path)
    asked: dict[str, object] = {
        "--unit": options.unit,
        "--inputs": options.inputs,
        "--dim": options.dim,
        "--scores": options.scores,
    }
    asked |= {"--labels": options.labels, "--labels-from": options.labels_from, "--ignore-index": options.ignore_index}
    asked["--region"] = None if options.region in ("all", audit.region) else options.region
    if wrong := [name for name, value in asked.items() if value is not None]:
        raise InputError(f"{str(path)!r} holds saved statistics; {wrong[0]} needs the predictions themselves")
    columns = sorted({column for column, _ in audit.groups})
    if missing := [name for name in options.groups if name not in columns]:
        have = ", ".join(columns) or "none"
        raise InputError(f"{str(path)!r} was saved without --group {missing[0]}; it has {have}")
    kept = f"Saved statistics of {audit.sums.n():,} predictions; other options are those with which they were saved."
    names = next((tuple(source["class_names"]) for source in audit.sources if source.get("class_names")), ())
    unit = next((source["unit"] for source in audit.sources if source.get("unit")), "")
    return Gathered(path, audit, (kept,), names, unit=unit)


def _audit(found: Predictions, ignored: int, region: str) -> Audit:
    inputs = cast("Literal['logits', 'probs']", found.inputs)
    return Audit(found.classes, inputs=inputs, ignore_index=ignored, region=region)


def _take(made: Gathered, chunk: Chunk, options: Options) -> None:
    assert chunk.labels is not None
    assert made.found is not None
    unit = _units(made.found, chunk, options) if made.unit else None
    groups = {name: plain_ids(chunk.columns[name]) for name in options.groups}
    made.audit.update(chunk.scores, chunk.labels, unit=unit, groups=groups)
    if made.misses is not None:
        made.misses.observe(chunk.scores, chunk.labels, _names(made.found, chunk), made.found.inputs)
    if made.sample is not None:
        made.sample.observe(chunk.scores, chunk.labels)
    if made.pairing is not None:
        rows = torch.arange(len(chunk.labels)) + chunk.origin[0]
        made.pairing.update(chunk.scores, chunk.labels, unit=rows % BLOCKS)


def _dense(found: Predictions) -> bool:
    """Whether a row has many predictions."""
    return found.items != found.rows


def _unit_words(found: Predictions, options: Options) -> str:
    if options.unit:
        return options.unit
    return "image" if _dense(found) else ""


def _units(found: Predictions, chunk: Chunk, options: Options) -> NDArray[Any]:
    """The column that was named, else every image by its name."""
    return plain_ids(chunk.columns[options.unit]) if options.unit else _names(found, chunk)


def _names(found: Predictions, chunk: Chunk) -> NDArray[Any]:
    return row_names(found, chunk.columns, chunk.origin[0], len(chunk.scores))


def row_names(found: Predictions, columns: Mapping[str, NDArray[Any]], first: int, n: int) -> NDArray[Any]:
    """An id for each of n rows: a column of ids, else the row's number; in a folder with the case before it."""
    for name in (column for known in IDS for column in columns if column.lower() == known):
        if name != "case" or len(found.cases) == found.rows:
            return plain_ids(columns[name])
    rows = range(first, first + n)
    if len(found.cases) > 1:
        return np.array([f"{case}[{row}]" for case, row in _places(found, rows)])
    return np.array(rows)


def _places(found: Predictions, rows: Iterable[int]) -> Iterator[tuple[str, int]]:
    for row in rows:
        first = 0
        for case in found.cases:
            if row < first + case.rows:
                yield case.name, row - first
                break
            first += case.rows


def plain_ids(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers or words, whatever a table made of them."""
    if values.dtype.kind in "iuU":
        return values
    if values.dtype.kind == "f" and bool((values == np.floor(values)).all()):
        return values.astype(np.int64)
    return values.astype(str)
