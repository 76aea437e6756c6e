"""`confide calibrate`: fit, apply and compare calibrators of saved predictions."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

from confide.cli.console import PROSE, check_output, find_class, open_console, refuse
from confide.core.errors import CalibrationWarning
from confide.data import opening
from confide.metrics.accuracy import Accuracy
from confide.metrics.ece import ECE
from confide.posthoc import ALL, Calibrator, load
from confide.posthoc.layout import MULTICLASS, read, wide
from confide.posthoc.state import digest
from confide.study import calibration
from confide.study.calibration import NONE, Data, Report, judged, of_label

SAME = "LEAKAGE: judged on data that it was fitted on. These numbers flatter; use rows that no fit has seen"


def fit(path: Path, output: Path, method: str, ignore_index: int, inputs: str | None, dim: int | None) -> None:
    """Learn and save."""
    check_output(output, ".safetensors")
    kind = find(method)
    data = _labelled(path, ignore_index, inputs, dim)
    console = open_console()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        found = kind(ignore_index=ignore_index).fit(data.logits, data.labels)
    found.save(output)
    learnt = f" {found.temperature_:.4f}" if hasattr(found, "temperature_") else ""
    learnt += f" (standard error {found.error_:.4f})" if hasattr(found, "error_") else ""
    console.print(Text(f"{kind.__name__}{learnt} from {found.n_:,} labels of {path}", "bold"), soft_wrap=True)
    console.print(f"NLL {found.nll_before_:.4f} before, {found.nll_after_:.4f} after, on the data of the fit itself")
    _print_notes(console, [str(w.message) for w in caught])
    console.print(Text(f"Saved: {output}. Does it help elsewhere? confide calibrate compare {path} TEST.NPZ", "dim"))


def apply(
    calibrator: Path, path: Path, output: Path, allow_same_data: bool, inputs: str | None, dim: int | None
) -> None:
    """Transform and save; judge, if there are labels."""
    check_output(output, ".npz")
    found, (logits, labels) = load(calibrator), _read(path, inputs, dim)
    found.set_params(from_probs=False, dim=1)  # as `_read` gives them
    if found.task_ != MULTICLASS and logits.dim() > 1 and logits.shape[1] == 2:
        logits = logits[:, 1] - logits[:, 0]  # one score a label comes as the two classes that it stands for
    arrays = {"logits": found.transform(logits).numpy(), "probs": found.predict_proba(logits).numpy()}
    console = open_console()
    if labels is not None:
        arrays["labels"] = labels.numpy()
        data = Data(logits, labels, found.ignore_index)
        if not allow_same_data and digest(read(data.logits, data.labels, found)) == found.data_hash_:
            console.print(Text(f"{SAME}; --allow-same-data if that is meant.", "bold red"))
        _print_effect(console, found, data)
    np.savez(output, **arrays)
    console.print(Text(f"Saved: {output} ({', '.join(arrays)})", "dim"), soft_wrap=True)


def compare(
    fit_on: Path,
    judge_on: Path | None,
    methods: Sequence[str],
    output: Path | None,
    ignore_index: int,
    inputs: str | None,
    dim: int | None,
    allow_same_data: bool,
) -> None:
    """Fit all that suit, print the table, recommend one."""
    if output is not None:
        check_output(output, ".json")
    kinds = [find(name) for name in methods] or list(ALL)
    data = _labelled(fit_on, ignore_index, inputs, dim)
    judge = None if judge_on is None else _labelled(judge_on, ignore_index, inputs, dim)
    report = calibration.compare(data, judge, kinds)
    console = open_console()
    if report.leakage and not allow_same_data:
        console.print(Text(f"{SAME}, or give one file for folds; --allow-same-data if that is meant.", "bold red"))
    _print_report(console, report)
    if output is not None:
        output.write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
        console.print(Text(f"Numbers: {output}", "dim"), soft_wrap=True)


def find(name: str) -> type[Calibrator]:
    """The calibrator of that name."""
    return find_class(name, ALL, "calibrator", f"there are {', '.join(kind.__name__ for kind in ALL)}")


def _read(path: Path, inputs: str | None, dim: int | None) -> tuple[Tensor, Tensor | None]:
    """Logits with classes on axis 1, and labels; probabilities are taken to logits."""
    found = opening.load(path, dim, inputs, lenient=False)
    return wide(found.logits, from_probs=found.inputs == "probs"), found.labels


def _labelled(path: Path, ignore_index: int, inputs: str | None, dim: int | None) -> Data:
    logits, labels = _read(path, inputs, dim)
    if labels is None:
        refuse(f"{str(path)!r} has no labels, from which to learn or judge: save them as 'labels' beside 'logits'")
    return Data(logits, labels, ignore_index)


def _print_effect(console: Console, found: Calibrator, data: Data) -> None:
    for name, calibrator in (("before", None), ("after", found)):
        log_p, y = judged(calibrator, data)
        nll, ece, accuracy = -float(of_label(log_p, y).mean()), ECE()(log_p, y), Accuracy()(log_p, y)
        console.print(f"{name:<7} NLL {nll:.4f}   ECE {100 * ece:.2f}%   accuracy {100 * accuracy:.2f}%")


def _print_report(console: Console, report: Report) -> None:
    width = min(console.width, PROSE)
    chosen = "leave the network as it is" if report.recommended == NONE else f"use {report.recommended}"
    line = f"{report.verdict[0].upper()}{report.verdict[1:]}: {chosen}; {report.reason}."
    console.print(Text(line, "bold"), width=width)
    console.print(Text(f"Judged on {report.judged_on}.", "dim"), width=width)
    console.print(_table(report))
    _print_notes(console, [_named(row.method, note) for row in report.rows for note in row.notes])
    for name, why in report.skipped:
        console.print(Text(f"{name} is left out: {why}.", "dim"), width=width)


def _named(method: str, note: str) -> str:
    return note if note.startswith(method) else f"{method}: {note}"


def _table(report: Report) -> Table:
    page = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for title in ("Method", "NLL", "change, 95%", "Brier", "ECE %", "acc. %", "ms"):
        page.add_column(title, justify="left" if title == "Method" else "right", no_wrap=True)
    for row in report.rows:
        change = "" if row.method == NONE else f"{row.low:+.4f} {row.high:+.4f}"
        page.add_row(
            row.method,
            f"{row.nll:.4f}",
            change,
            f"{row.brier:.4f}",
            f"{100 * row.ece:.2f}",
            f"{100 * row.accuracy:.2f}",
            "" if row.method == NONE else f"{1000 * row.seconds:.0f}",
            style="bold" if row.method == report.recommended else "",
        )
    return page


def _print_notes(console: Console, notes: Sequence[str]) -> None:
    for note in dict.fromkeys(notes):
        console.print(Text(f"Note: {note}.", "yellow"), width=min(console.width, PROSE))
