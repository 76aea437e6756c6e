"""Open saved predictions: which array is what, why, and what speaks against it.

Nothing in a file can run code: pickled objects are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.data.cases import Pair, case_columns, pairs
from confide.data.files.array import Array
from confide.data.files.formats import arrays_of
from confide.data.kind import Kind, decide
from confide.data.layout import Layout, arrange
from confide.data.naming import Roles, find_labels, held, roles
from confide.data.predictions import Case, Predictions, whole

LOOK = 1 << 20  # scores that are looked at to tell what they are
LOOK_LABELS = 1 << 24
IGNORED = (255, -1, -100)  # the values in daily use


@dataclass(frozen=True, eq=False)
class Loaded:
    """What a network said about some data, and what was right; classes are on axis 1."""

    logits: Tensor
    labels: Tensor | None
    names: tuple[str, ...]  # of the arrays that were read
    inputs: str  # what the scores were taken for: "logits" or "probs"


def open_predictions(
    path: Path | str,
    *,
    inputs: str | None = None,
    dim: int | None = None,
    ignore_index: int | None = None,
    scores: str | None = None,
    labels: str | None = None,
    labels_from: Path | str | None = None,
    lenient: bool = False,
) -> Predictions:
    """Find scores, labels and columns in a file or a folder, and say why.

    `scores` and `labels` name arrays, `labels_from` a file or folder with the labels; `inputs` is "logits" or "probs",
    `dim` the class axis. Where name and content contradict each other it refuses, unless `lenient`.
    """
    path, other = Path(path), None if labels_from is None else Path(labels_from)
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    found, how = pairs(path, other)
    parts = [_roles(pair, scores, labels) for pair in found]
    extra = case_columns(path, [pair.name for pair in found]) if path.is_dir() else {}
    axis = _common_axis(parts) if dim is None and len(parts) > 1 else dim
    cases = tuple(_case(pair, part, axis, extra, path.is_dir()) for pair, part in zip(found, parts, strict=True))
    _check_alike(cases)
    kind = _kind(cases[0].layout, inputs)
    if kind.doubt and not lenient:
        raise InputError(f"{str(path)!r}: {kind.doubt}")
    ignored, words = _ignored(cases[0].layout, ignore_index)
    said = (how, *parts[0].said, cases[0].layout.said, kind.said, words, _column_words(cases[0]))
    return Predictions(path, cases, kind, ignored, parts[0].class_names, tuple(filter(None, said)))


def load(path: Path, dim: int | None = None, inputs: str | None = None, lenient: bool = True) -> Loaded:
    """All logits and labels of a path, in memory. If lenient, what the values are is for the caller to judge."""
    found = open_predictions(path, dim=dim, inputs=inputs, lenient=lenient)
    chunks = list(found.chunks())
    logits = torch.cat([chunk.scores for chunk in chunks])
    logits = logits.float() if logits.element_size() < 4 else logits
    labels = [chunk.labels for chunk in chunks if chunk.labels is not None]
    layout = found.cases[0].layout
    names = tuple(array.name for array in (layout.scores, layout.labels) if array is not None)
    return Loaded(logits, torch.cat(labels) if labels else None, names, found.inputs)


def _roles(pair: Pair, scores: str | None, labels: str | None) -> Roles:
    arrays = arrays_of(pair.scores)
    if pair.labels is None:
        return roles(arrays, pair.scores, scores, labels)
    others = arrays_of(pair.labels)
    truth = next(iter(others.values())) if len(others) == 1 else find_labels(others, pair.labels, labels)[0]
    if truth is None:
        raise InputError(f"{str(pair.labels)!r} has no array of labels; it holds {held(others)}")
    return roles(arrays, pair.scores, scores, apart=truth)


def _common_axis(parts: Sequence[Roles]) -> int | None:
    """Where the shape of one case leaves the class axis open, another tells."""
    for part in parts:
        try:
            return arrange(part.scores, part.labels).axis
        except InputError:
            continue
    return None


def _case(pair: Pair, part: Roles, dim: int | None, extra: Mapping[str, Mapping[str, str]], folder: bool) -> Case:
    fixed = {name: values[pair.name] for name, values in extra.items()}
    return Case(
        pair.name, arrange(part.scores, part.labels, dim), part.columns, {"case": pair.name} | fixed if folder else {}
    )


def _check_alike(cases: Sequence[Case]) -> None:
    first = cases[0].layout
    for layout in (case.layout for case in cases[1:]):
        if layout.classes != first.classes or (layout.labels is None) != (first.labels is None):
            raise InputError(f"{_alike(layout)}, where {_alike(first)}: all cases must be alike")


def _alike(layout: Layout) -> str:
    labels = "no labels" if layout.labels is None else "labels"
    return f"{str(layout.scores.path)!r} has {layout.classes} classes and {labels}"


def _kind(layout: Layout, inputs: str | None) -> Kind:
    """From the first rows; a decision for all of the file, never for a batch."""
    scores = layout.scores
    n = max(1, LOOK // max(prod(scores.shape) // scores.shape[layout.cut], 1))
    values = scores.read(0, n, layout.cut)
    if layout.axis is None and values.max() > 1 and bool((values == np.floor(values)).all()):
        raise InputError(
            f"{scores.name!r} in {str(scores.path)!r} holds whole numbers up to {values.max():g}: predicted "
            "classes, by all appearance. Confidence needs a score for each class"
        )
    rows = values.reshape(-1) if layout.axis is None else np.moveaxis(values, layout.axis, -1)
    return decide(scores.name, rows, scores.dtype, inputs)


def _ignored(layout: Layout, ignore_index: int | None) -> tuple[Mapping[int, float], str]:
    """Labels outside the classes that look as if they meant "ignore", their share, and the words for it."""
    labels = layout.labels
    if labels is None or layout.soft:
        return {}, ""
    counts = _count_labels(labels)
    share = {value: count / counts.total() for value, count in counts.items()}
    about = "" if counts.total() == prod(labels.shape) else "about "
    if ignore_index is not None:
        return {}, f"{ignore_index} is ignored, as you said ({about}{share.get(ignore_index, 0):.1%} of the labels)."
    stray = {value: part for value, part in share.items() if not 0 <= value < layout.classes}
    if layout.axis is None and len(stray) > 1 and len(share) > 3:
        raise InputError(
            f"{layout.scores.name!r} in {str(layout.scores.path)!r} has one number for each label, but labels go up to "
            f"{max(share)}: scores need one number for each class"
        )
    likely = {v: part for v, part in stray.items() if v in IGNORED or len(stray) == 1}
    words = [
        f"{value} looks like ignore ({about}{part:.1%} of the labels); pass --ignore-index {value} to leave it out, "
        "else it is a label out of range."
        for value, part in likely.items()
    ]
    return likely, " ".join(words)


def _count_labels(labels: Array) -> Counter[int]:
    """How often each value occurs, in the first labels of a large file."""
    step = max(1, LOOK // max(prod(labels.shape) // labels.shape[0], 1))
    rounds = 1 if labels.in_order else LOOK_LABELS // LOOK
    counts: Counter[int] = Counter()
    for start in range(0, min(labels.shape[0], rounds * step), step):
        values, times = np.unique(labels.read(start, start + step), return_counts=True)
        counts.update(dict(zip(whole(labels, values).tolist(), times.tolist(), strict=True)))
    return counts


def _column_words(case: Case) -> str:
    names = [array.name for array in case.columns]
    return f"One value a row: {', '.join(names)}." if names else ""
