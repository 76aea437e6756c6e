"""The report: one HTML file that holds everything and fetches nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from confide.report.check import tables
from confide.report.check.maps import Case
from confide.report.check.markup import Content, Safe, join, tag
from confide.report.check.numbers import Curve, Figure, Reliability, Shares, figures
from confide.report.check.svg import draw, peak
from confide.report.check.words import measured, percent, taken_for, title

Data = Mapping[str, Any]
NAMES = {
    "reliability": "Reliability diagram",
    "confidence": "Confidence",
    "risk_coverage": "Risk and coverage",
    "classes": "Classes",
    "groups": "Groups",
}
SAYS = {
    "reliability": "Bars: accuracy in each bin of confidence. Points stand at the bin's mean confidence, with the 95 % "
    "interval of the accuracy; a calibrated network has them on the dashed line. Below: predictions in each bin.",
    "confidence": "How the confidences are spread. Where the mean confidence (dashed) lies right of the accuracy, the "
    "network is overconfident.",
    "risk_coverage": "The error rate if only the surest predictions are kept.",
    "classes": "Classes that get more (right) or less (left) probability than they occur, the furthest off.",
    "groups": "ECE of each group with its 95 % interval; dashed: all predictions. Faint ones are too small to judge.",
}


def page(data: Data, cases: Sequence[Case] = ()) -> str:
    """From a document to HTML."""
    checks = data["checks"]
    body = [
        *_head(data),
        *_comparisons(data),
        *_numbers(checks),
        *_maps(cases),
        *(part for check in checks for part in _lists(check, len(checks) > 1)),
        _definitions(checks[0]["result"]),
        _provenance(data),
    ]
    name = ", ".join(check["name"] for check in checks)
    head = (
        Safe('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", f"confide check · {name}"),
        tag("style", Safe(_asset("page.css"))),
    )
    script = tag("script", Safe(_asset("page.js")))
    numbers = tag("script", Safe(_embedded(data)), type="application/json", id="data")
    return f"<!doctype html>\n{tag('html', tag('head', *head), tag('body', *body, numbers, script), lang='en')}\n"


def _asset(name: str) -> str:
    return resources.files("confide.report.check").joinpath(name).read_text(encoding="utf-8")


def _embedded(data: Data) -> str:
    """All numbers, in a form that no text in them can break out of."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _section(name: str, *content: Content) -> Safe:
    return tag("section", tag("h2", name), *content)


def _head(data: Data) -> Iterator[Safe]:
    checks = data["checks"]
    yield tag("div", f"confide check · {', '.join(check['name'] for check in checks)}", class_="eyebrow")
    if data["comparisons"]:
        yield tag("h1", data["comparisons"][0]["headline"])
        for check in checks:
            yield tag("p", tag("b", f"{check['name']}: "), title(check["result"]), " ", _quiet(taken_for(check)))
    else:
        yield tag("h1", title(checks[0]["result"]))
        yield tag("p", " ".join((*checks[0]["result"]["verdict"]["sentences"], taken_for(checks[0]) + ".")))
    if data["fail_if"]:
        words = "Failed" if data["fail_if"]["failed"] else "Passed"
        yield tag("p", tag("b", words), f": {data['fail_if']['condition']}")
    advice = [tag("li", sentence) for sentence in checks[-1]["advice"]]
    if advice:
        name = f"What to do about {checks[-1]['name']}" if len(checks) > 1 else "What to do"
        yield tag("div", tag("b", name), tag("ul", *advice), class_="advice")


def _quiet(words: str) -> Safe:
    return tag("span", words, class_="quiet")


def _comparisons(data: Data) -> Iterator[Safe]:
    for one, check in zip(data["comparisons"], data["checks"][1:], strict=True):
        words = [tag("h3", one["headline"])] if len(data["comparisons"]) > 1 else []
        yield _section(
            f"From {one['a']} to {one['b']}", *words, tables.changes(one, check), tag("p", one["note"], class_="quiet")
        )


def _units_words(checks: Sequence[Data]) -> Safe | None:
    """Means over units beside pooled numbers, both by name."""
    lines = []
    for check in checks:
        if (units := check["result"]["units"]) is None:
            continue
        ece, unit = units["mean"]["ece"], check["unit"] or "unit"
        span = "" if ece["low"] is None else f" (95 % interval {measured(ece['low'])} to {measured(ece['high'])})"
        lines.append(
            f"The table pools all {'pixels' if check['result']['dense'] else 'rows'}. The mean over {units['count']:,} "
            f"units ({unit}), each weighing the same, is an ECE of {measured(ece['value'])}{span} and an accuracy of "
            f"{measured(units['mean']['accuracy']['value'])}."
        )
    return join(*(tag("p", line, class_="quiet") for line in dict.fromkeys(lines)))


def _numbers(checks: Sequence[Data]) -> Iterator[Safe]:
    """One input: its diagram beside the table. Several: a row for each figure, a column for each input."""
    drawn = [figures(check["result"], check["name"], check["class_names"]) for check in checks]
    names = [name for name in NAMES if any(name in one for one in drawn)]
    table = tag("div", tables.metrics(checks), _units_words(checks))
    if len(checks) == 1:
        panels = [_figure(name, drawn[0][name]) for name in names]
        yield _section("Numbers", tag("div", table, panels[0], class_="split"))
        yield _section("Figures", tag("div", *panels[1:], class_="panels"))
        return
    yield _section("Numbers", table)
    for name in names:
        alike = [one[name] for one in drawn if name in one]
        panels = [_figure(name, figure, named=True, top=max(map(peak, alike))) for figure in alike]
        yield _section(NAMES[name], tag("p", SAYS[name], class_="quiet"), tag("div", *panels, class_="panels"))


def _figure(name: str, figure: Figure, named: bool = False, top: float | None = None) -> Safe:
    head = tag("b", figure.title if named else NAMES[name])
    words = _summary(figure)
    says = None if named else tag("p", SAYS[name], class_="quiet")
    return tag("figure", tag("figcaption", head, f" · {words}" if words else None), draw(figure, top), says)


def _summary(figure: Figure) -> str:
    if isinstance(figure, Reliability):
        return f"ECE {measured(figure.ece)}, n = {figure.total:,}"
    if isinstance(figure, Curve):
        return f"AURC {measured(figure.area)}"
    return f"mean {percent(figure.confidence)}" if isinstance(figure, Shares) else ""


def _maps(cases: Sequence[Case]) -> Iterator[Safe]:
    if not cases:
        return
    ramp = [
        tag("p", "Error: ", *_swatches(), class_="quiet"),
        tag(
            "p",
            "Confidence: 0",
            tag("span", "", class_="ramp", style=f"background:{cases[0].ramp}"),
            "1",
            class_="quiet",
        ),
    ]
    blocks = [tag("div", tag("h3", case.title), _quiet(case.words), _row(case), class_="case") for case in cases]
    yield _section("Maps", *ramp, *blocks)


def _swatches() -> Iterator[Safe]:
    from confide.report.check.maps import ERRORS

    for name, colour in ERRORS.items():
        shade = "#{:02x}{:02x}{:02x}".format(*colour)
        yield join(tag("span", "", class_="swatch", style=f"background:{shade}"), f"{name}  ")


def _row(case: Case) -> Safe:
    pictures = [
        tag(
            "figure",
            Safe(f'<img alt="{name} of {tag("b", case.title)[3:-4]}" src="{source}">'),
            tag("figcaption", name),
        )
        for name, source in case.pictures
    ]
    return tag("div", *pictures, class_="maps")


def _lists(check: Data, several: bool) -> Iterator[Safe]:
    of = f" of {check['name']}" if several else ""
    result = check["result"]
    if result["groups"]:
        yield _section(f"Groups{of}", tables.groups(check))
    if result["units"]:
        yield _section(f"Worst {_plural(check['unit'])}{of}", tables.units(result))
    if check["misses"]:
        yield _section(f"Surest errors{of}", tables.misses(check))
    about = (
        "Recall: how many rows of the class are predicted as it. Probability: what it gets on average; gap: how much "
        "more than its frequency."
    )
    many = f" The {tables.MOST:,} that are furthest off." if len(result["classes"]) > tables.MOST else ""
    yield _section(f"Classes{of}", tag("p", about + many, class_="quiet"), tables.classes(check))


def _plural(unit: str) -> str:
    return f"{unit.split(' (')[0]}s" if unit else "units"


def _definitions(result: Data) -> Safe:
    rows = [
        part
        for row in result["metrics"]
        for part in (tag("dt", row["metric"]), tag("dd", f"{row['definition']} {row['note']}".strip()))
    ]
    bins = f"Bins of equal width: {result['bins_count']}. Numbers are fractions; points in words are hundredths. "
    chance = "By chance: what a perfectly calibrated network would show on so many predictions."
    return _section(
        "Definitions",
        tag("p", bins + chance, class_="quiet"),
        tag("details", tag("summary", "Every metric"), tag("dl", *rows)),
    )


def _provenance(data: Data) -> Safe:
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
    return _section("Provenance", tag("dl", *lines))


def _entry(name: str, *content: Content) -> Safe:
    return join(tag("dt", name) if name else None, tag("dd", *content))


def _file(file: Data) -> Safe:
    return join(tag("code", file["path"]), f", {file['bytes']:,} bytes, SHA-256 ", tag("code", file["sha256"]))
