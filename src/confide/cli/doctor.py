"""`confide doctor`: the traps in a file of predictions, in plain words."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import Progress
from rich.text import Text

from confide.analysis.doctor.batch import Finding, Setting
from confide.analysis.doctor.exam import Diagnosis, Exam
from confide.cli.console import INDENT, PROSE, open_console
from confide.data.opening import open_predictions
from confide.data.predictions import Predictions

CHUNK = 1 << 23  # bytes of scores read at a time


def run(path: Path, ignore_index: int | None, as_json: bool, **options: str | int | Path | None) -> None:
    """Read once, print once; exit code 1 if numbers would be wrong."""
    found = open_predictions(path, ignore_index=ignore_index, lenient=True, **options)  # type: ignore[arg-type]
    diagnosis = _examine(found, ignore_index)
    diagnosis = replace(diagnosis, findings=(*_doubt(found), *diagnosis.findings, *_axis(found)))
    if as_json:
        print(json.dumps(_plain(found, diagnosis), indent=2))
    else:
        console = open_console()
        for part in _parts(found, diagnosis):
            console.print(part, width=min(console.width, PROSE))
    sys.exit(1 if diagnosis.wrong else 0)


def _examine(found: Predictions, ignore_index: int | None) -> Diagnosis:
    """Progress goes to stderr, so that a pipe holds results only."""
    setting = Setting(found.classes, found.kind.shown or found.inputs, found.dtype, ignore_index)
    exam = Exam(setting, found.labelled)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for chunk in progress.track(found.chunks(CHUNK), total=None, description="Looking"):
            exam.observe(chunk.scores, chunk.labels, chunk.origin)
    return exam.diagnosis()


def _doubt(found: Predictions) -> Iterator[Finding]:
    """A name that contradicts the content comes first: all else depends on it."""
    if found.kind.doubt:
        what, _, fix = found.kind.doubt.partition("; ")
        yield Finding(
            "logits-or-probabilities",
            True,
            what,
            "Read as the wrong kind they get a second softmax, or none, and every number but accuracy is wrong. What "
            f"follows takes them for {'probabilities' if found.kind.shown == 'probs' else 'logits'}.",
            f"{fix[:1].upper()}{fix[1:]}.",
        )


def _axis(found: Predictions) -> Iterator[Finding]:
    """A table whose axes nothing but habit tells apart."""
    shape = found.cases[0].layout.scores.shape
    open_axis = len(shape) == 2 and (not found.labelled or shape[0] == shape[1])
    if open_axis and found.cases[0].layout.axis == 1 and shape[0] <= shape[1]:
        yield Finding(
            "class-axis",
            False,
            f"{shape[1]:,} classes for {shape[0]:,} rows, and no labels that tell the axes of {shape} apart",
            "If classes are on the other axis, every number is wrong.",
            "If so, pass --dim 0.",
        )


def _plain(found: Predictions, diagnosis: Diagnosis) -> dict[str, object]:
    return {
        "schema": 1,
        "path": str(found.path),
        "inputs": found.inputs,
        "classes": found.classes,
        "rows": found.rows,
        "predictions": diagnosis.items,
        "taken_for": list(found.said),
        "findings": [asdict(finding) for finding in diagnosis.findings],
        "fine": list(diagnosis.fine),
        "wrong": diagnosis.wrong,
    }


def _parts(found: Predictions, diagnosis: Diagnosis) -> Iterator[RenderableType]:
    yield Text(f"{found.path}: {diagnosis.items:,} predictions of {found.classes:,} classes", "bold")
    yield Text(" ".join(found.said), "dim")
    yield ""
    yield Text(_verdict(diagnosis.findings))
    for finding in diagnosis.findings:
        yield ""
        mark = ("Wrong numbers: ", "bold red") if finding.wrong else ("To know: ", "bold yellow")
        yield Text.assemble(mark, _sentence(finding.found))
        yield Padding(Text.assemble(("What it does  ", "dim"), finding.effect), INDENT, expand=False)
        yield Padding(Text.assemble(("What to do    ", "dim"), finding.fix), INDENT, expand=False)
    if diagnosis.fine:
        yield ""
        yield Text.assemble(("Looked at and fine: ", "bold green"), f"{'; '.join(diagnosis.fine)}.")


def _verdict(findings: Sequence[Finding]) -> str:
    wrong = sum(finding.wrong for finding in findings)
    if wrong:
        return f"{wrong} finding{'s' if wrong > 1 else ''} would make numbers wrong."
    return "Nothing that makes numbers wrong was found."


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."
