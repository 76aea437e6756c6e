"""The page from its figures on: long tables, definitions, provenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from confide.report.check import tables
from confide.report.check.advice import class_title
from confide.report.check.markup import Content, Safe, join, tag
from confide.report.check.words import measured

Data = Mapping[str, Any]


def section(name: str, *content: Content) -> Safe:
    """A heading and what stands under it."""
    return tag("section", tag("h2", name), *content)


def lists(check: Data, several: bool) -> Iterator[Safe]:
    """Groups, worst units, surest errors, classes."""
    of = f" of {check['name']}" if several else ""
    result = check["result"]
    if result["groups"]:
        yield section(f"Groups{of}", tables.groups(check))
    if result["units"]:
        yield section(f"Worst {_plural(check['unit'])}{of}", tables.units(result))
    if check["misses"]:
        yield section(f"Surest errors{of}", tables.misses(check))
    about = (
        "Recall: how many rows of the class are predicted as it. Probability: what it gets on average; gap: how much "
        "more than its frequency."
    )
    worst = sorted(result["classes"], key=lambda row: -(row["ece"] or 0.0))[:5]
    named = ", ".join(f"{class_title(row['class'], check['class_names'])} {measured(row['ece'])}" for row in worst)
    few = len(result["classes"]) < result["classes_count"]
    many = f" Here are the {len(result['classes']):,} of largest ECE; the JSON has all." if few else ""
    yield section(
        f"Classes{of}",
        tag("p", f"Largest ECE: {named}."),
        tag("p", about + many, class_="quiet"),
        tables.classes(check),
    )


def _plural(unit: str) -> str:
    return f"{unit.split(' (')[0]}s" if unit else "units"


def definitions(result: Data) -> Safe:
    """What each number means."""
    rows = [
        part
        for row in result["metrics"]
        for part in (tag("dt", row["metric"]), tag("dd", f"{row['definition']} {row['note']}".strip()))
    ]
    bins = f"Bins of equal width: {result['bins_count']}. Numbers are fractions; points in words are hundredths. "
    chance = "By chance: what a perfectly calibrated network would show on so many predictions."
    return section(
        "Definitions",
        tag("p", bins + chance, class_="quiet"),
        tag("details", tag("summary", "Every metric"), tag("dl", *rows)),
    )


def provenance(data: Data) -> Safe:
    """What the numbers came from, and how."""
    lines: list[Safe] = [_entry("Command", tag("code", data["command"])), _entry("Made", data["made"])]
    versions = ", ".join(f"{name} {value}" for name, value in data["environment"].items())
    lines.append(_entry("Versions", f"confide {data['confide']}, {versions}"))
    for check in data["checks"]:
        settings = ", ".join(f"{name} {value}" for name, value in check["result"]["settings"].items())
        lines.append(_entry(check["name"], " ".join(check["taken_for"]), tag("br"), f"Settings: {settings}."))
        files = [*check["files"], *(file for source in check["sources"] for file in source["files"])]
        lines += [_entry("", _file(file)) for file in files[:50]]
        if len(files) > 50:
            lines.append(_entry("", f"and {len(files) - 50:,} more, which the JSON lists"))
    return section("Provenance", tag("dl", *lines))


def _entry(name: str, *content: Content) -> Safe:
    return join(tag("dt", name) if name else None, tag("dd", *content))


def _file(file: Data) -> Safe:
    return join(tag("code", file["path"]), f", {file['bytes']:,} bytes, SHA-256 ", tag("code", file["sha256"]))
