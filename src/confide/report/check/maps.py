"""Maps of single images: picture, truth, error and confidence side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.core.errors import InputError
from confide.data.predictions import Predictions
from confide.report.check.gathering import Gathered, row_names
from confide.report.check.pictures import picture_of
from confide.report.check.pixels import Colour, data_uri, palette, ramp, ramp_css, sized
from confide.report.check.words import measured, percent

SHOWN, MOST = 4, 8
ERRORS: Mapping[str, Colour] = {"right": (226, 230, 233), "wrong": (213, 94, 0), "ignored": (255, 255, 255)}


@dataclass(frozen=True)
class Case:
    """One image: what it is called, what is to say about it, and pictures as (name, data URI)."""

    title: str
    words: str
    pictures: tuple[tuple[str, str], ...]
    ramp: str


def maps_of(made: Gathered, data: Mapping[str, Any], wanted: Sequence[str], images: Path | None) -> list[Case]:
    """Of the cases named, else of the worst images, else of the first; none where only statistics are left."""
    if made.found is None or _axes(made.found) not in (2, 3):
        if wanted or images is not None:
            raise InputError(f"{str(made.path)!r} holds no images of which maps could be shown")
        return []
    places = {str(name): row for row, name in enumerate(_all_names(made))}
    if missing := [name for name in wanted if name not in places]:
        raise InputError(f"there is no case {missing[0]!r}; there are {', '.join(list(places)[:5])}, ...")
    worst = [str(row["unit"]) for row in data["checks"][-1]["result"]["units"]["worst"]]
    chosen = list(wanted)[:MOST] or ([name for name in worst if name in places] or list(places))[:SHOWN]
    return [_case(made, name, places[name], images) for name in chosen]


def _axes(found: Predictions) -> int:
    """Of one image."""
    layout = found.cases[0].layout
    return len(layout.scores.shape) - (layout.axis is not None) - (layout.axis != 0)


def _all_names(made: Gathered) -> list[Any]:
    assert made.found is not None
    found, first, names = made.found, 0, []
    for case in found.cases:
        columns = {} if case.layout.cut else {array.name: array.read(0, case.rows) for array in case.columns}
        fixed = {name: np.full(case.rows, value) for name, value in case.fixed.items()}
        names += row_names(found, columns | fixed, first, case.rows).tolist()
        first += case.rows
    return names


def _case(made: Gathered, name: str, row: int, images: Path | None) -> Case:
    assert made.found is not None
    chunk = made.found.row(row)
    scores, labels = chunk.scores[0].float(), chunk.labels
    assert labels is not None
    truth = labels[0].argmax(0) if labels.is_floating_point() else labels[0]
    guess, confidence = scores.max(0).indices, (scores if made.found.inputs == "probs" else scores.softmax(0)).amax(0)
    ignored = torch.eq(truth, -1 if made.audit.ignore_index is None else made.audit.ignore_index)
    cut = _slice(truth, guess, ignored)
    y, right, sure, out = (_cut(x, cut) for x in (truth, guess == truth, confidence, ignored))
    pictures = [] if images is None else [("Image", data_uri(sized(picture_of(images, name, truth.shape, cut))))]
    colours = np.concatenate((palette(made.found.classes), np.array([ERRORS["ignored"]], np.uint8)))
    pictures += [
        ("Truth", data_uri(colours[sized(np.where(out, made.found.classes, y))])),
        ("Error", data_uri(_error_map(sized(right), sized(out)))),
        ("Confidence", data_uri(ramp(sized(sure)))),
    ]
    return Case(name, _words(right, sure, out, cut), tuple(pictures), ramp_css())


def _slice(truth: Tensor, guess: Tensor, ignored: Tensor) -> tuple[int, int] | None:
    """Of a volume: along its shortest axis the slice with most errors."""
    if truth.dim() == 2:
        return None
    axis = min(range(3), key=lambda k: truth.shape[k])
    others = [k for k in range(3) if k != axis]
    return axis, int(((guess != truth) & ~ignored).sum(others).argmax())


def _cut(x: Tensor, cut: tuple[int, int] | None) -> NDArray[Any]:
    found: NDArray[Any] = (x if cut is None else x.select(*cut)).numpy()
    return found


def _error_map(right: NDArray[Any], out: NDArray[Any]) -> NDArray[np.uint8]:
    kind = np.where(out, 2, np.where(right, 0, 1))
    return np.array(list(ERRORS.values()), np.uint8)[kind]


def _words(right: NDArray[Any], sure: NDArray[Any], out: NDArray[Any], cut: tuple[int, int] | None) -> str:
    """About what is shown, which of a volume is one slice."""
    kept = ~out
    where = "" if cut is None else f"slice {cut[1]} along axis {cut[0]}, the one with most errors: "
    if not kept.any():
        return f"{where}all pixels are ignored"
    wrong = kept & ~right
    of_errors = f", {measured(float(sure[wrong].mean()), 3)} where it is wrong" if wrong.any() else ""
    mean = measured(float(torch.from_numpy(sure[kept]).double().mean()), 3)
    return f"{where}accuracy {percent(float(right[kept].mean()))}, mean confidence {mean}{of_errors}"
