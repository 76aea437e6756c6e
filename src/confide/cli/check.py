"""`confide check`: one verdict in words, then the table, then what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from confide.cli.console import PROSE, check_output, open_console, refuse, version
from confide.data.predictions import Predictions
from confide.report.check import document
from confide.report.check.condition import parse
from confide.report.check.gathering import Gathered, Options, gather, is_saved, open_checked, saved
from confide.report.check.words import change_words, interval, measured, name_each, taken_for, title

GLANCE = ("signed_gap", "ece", "adaptive_ece", "classwise_ece", "nll", "brier", "accuracy", "auroc", "aurc")


@dataclass(frozen=True)
class Outputs:
    """Where results go beside the terminal."""

    json: Path | None = None
    report: Path | None = None
    save: Path | None = None
    figures: Path | None = None
    images: Path | None = None
    cases: tuple[str, ...] = ()
    fail_if: str | None = None


def run(paths: Sequence[Path], options: Options, out: Outputs) -> None:
    """Read once, print once; exit code 1 if a condition of --fail-if holds."""
    condition = None if out.fail_if is None else parse(out.fail_if)
    if condition is not None:
        condition.check(document.names(len(paths) > 1))
    _check_outputs(out, len(paths))
    made = _gather(paths, options)
    data = document.document(made, version(), hashed=bool(out.json or out.report))
    failed = condition is not None and document.judge(data, condition)
    if out.json is None or str(out.json) != "-":
        console = open_console()
        for part in _parts(data):
            console.print(part, width=min(console.width, PROSE))
    _write(out, data, made)
    sys.exit(1 if failed else 0)


def merge(paths: Sequence[Path], output: Path) -> None:
    """One file from several."""
    check_output(output, ".npz")
    if missing := [path for path in paths if not path.exists()]:
        refuse(f"there is no file {str(missing[0])!r}")
    if wrong := [path for path in paths if not is_saved(path)]:
        refuse(f"{str(wrong[0])!r} holds no saved statistics; confide check --save writes them")
    audit = document.merged(paths)
    audit.save(output)
    console = open_console()
    console.print(Text(f"{output}: {audit.sums.n():,} predictions from {len(paths)} files"), soft_wrap=True)
    console.print(Text(f"Look at it: confide check {output}", "dim"), soft_wrap=True)


def _check_outputs(out: Outputs, inputs: int) -> None:
    """Before any work is done."""
    for path, ending in ((out.json, ".json"), (out.report, ".html"), (out.save, ".npz")):
        if path is None or (path is out.json and str(path) == "-"):
            continue
        check_output(path, ending)
    if out.save is not None and inputs > 1:
        refuse("--save keeps the statistics of one input; give one")
    if out.images is not None and out.report is None:
        refuse("--images shows pictures in a report; add --report out.html")
    if out.images is not None and not out.images.is_dir():
        refuse(f"--images {str(out.images)!r} is no folder")
    if out.figures is not None:
        if out.figures.exists() and not out.figures.is_dir():
            refuse(f"--figures {str(out.figures)!r} is a file; name a folder, which is made if it is not there")
        from confide.report.figures import figure_class

        figure_class()


def _gather(paths: Sequence[Path], options: Options) -> list[Gathered]:
    """Open everything before anything is read: what is wrong is said at once."""
    opened = [saved(path, options) if is_saved(path) else open_checked(path, options) for path in paths]
    made = []
    for one, name in zip(opened, name_each(paths), strict=True):
        if isinstance(one, Predictions):
            _say(one)
            with _progress(one) as tick:
                one = gather(one, options, tick, paired=len(paths) > 1)
        one.name = name
        made.append(one)
    return made


def _say(found: Predictions) -> None:
    """What arrays are taken for goes to stderr, before the work begins, so that a pipe holds results only."""
    console = Console(stderr=True, highlight=False)
    console.print(Text(f"{found.path}: {' '.join(found.said)}", "dim"), width=min(console.width, PROSE))


@contextmanager
def _progress(found: Predictions) -> Iterator[Callable[[int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"Reading {found.path.name}", total=found.items)
        yield lambda done: progress.update(task, advance=done)


def _write(out: Outputs, data: dict[str, Any], made: Sequence[Gathered]) -> None:
    if out.json is not None:
        text = document.write(data)
        if str(out.json) == "-":
            print(text, end="")
        else:
            out.json.write_text(text, encoding="utf-8")
            _tell("Numbers", out.json)
    if out.save is not None:
        made[0].audit.sources = made[0].audit.sources or [document.source(made[0])]
        made[0].audit.save(out.save)
        _tell("Statistics", out.save)
    if out.report is not None:
        from confide.report.check.maps import maps_of
        from confide.report.check.page import page

        out.report.write_text(page(data, maps_of(made[-1], data, out.cases, out.images)), encoding="utf-8")
        _tell("Report", out.report)
    if out.figures is not None:
        from confide.report.check.drawing import write_all

        _tell("Figures", ", ".join(path.name for path in write_all(data, out.figures)))


def _tell(what: str, where: object) -> None:
    Console(stderr=True, highlight=False).print(Text(f"{what}: {where}", "dim"), soft_wrap=True)


def _parts(data: dict[str, Any]) -> Iterator[RenderableType]:
    for compared in data["comparisons"]:
        yield Text(f"{compared['a']} to {compared['b']}: {compared['headline']}", "bold")
        yield _changes(compared, {row["key"]: row["metric"] for row in data["checks"][0]["result"]["metrics"]})
        yield ""
    for number, check in enumerate(data["checks"]):
        if number:
            yield ""
        result = check["result"]
        name = f"{check['name']}: " if len(data["checks"]) > 1 else ""
        yield Text(f"{name}{title(result)}", "bold")
        yield Text(taken_for(check), "dim")
        yield ""
        yield _metrics(result)
        if result["groups"]:
            yield ""
            yield _groups(result["groups"])
        yield ""
        for sentence in check["advice"]:
            yield Text(sentence)
    if data["fail_if"]:
        found = ", ".join(f"{name} = {measured(value)}" for name, value in data["fail_if"]["values"].items())
        words = ("Failed", "bold red") if data["fail_if"]["failed"] else ("Passed", "bold green")
        yield ""
        yield Text.assemble(words, f": {data['fail_if']['condition']} ({found})")


def _table(*columns: str) -> Table:
    page = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    for number, column in enumerate(columns):
        page.add_column(column, justify="right" if number else "left", no_wrap=True)
    return page


def _metrics(result: dict[str, Any]) -> Table:
    page = _table("Metric", "value", "95 % interval", "by chance")
    for row in result["metrics"]:
        if row["key"] in GLANCE or row["kind"] == "overlap":
            chance = "" if row["chance"] is None or row["key"] == "signed_gap" else measured(row["chance"])
            page.add_row(row["metric"], measured(row["value"]), interval(row), chance)
    return page


def _groups(rows: Sequence[dict[str, Any]]) -> Table:
    page = _table("Group", "n", "accuracy", "gap", "ECE", "95 % interval", "")
    for row in rows:
        numbers = (row["accuracy"], row["gap"]["value"], row["ece"]["value"])
        page.add_row(
            f"{row['column']} = {row['value']}",
            f"{row['n']:,}",
            *map(measured, numbers),
            interval(row["ece"]),
            "too few" if row["too_few"] else "",
        )
    return page


def _changes(compared: dict[str, Any], names: dict[str, str]) -> Table:
    page = _table("Metric", "first", "second", "change", "95 % interval", "")
    for row in compared["changes"]:
        page.add_row(
            names[row["key"]], measured(row["a"]), measured(row["b"]), change_words(row), interval(row), row["verdict"]
        )
    return page
