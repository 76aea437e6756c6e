"""The report: one HTML file that holds everything and fetches nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from itertools import starmap
from typing import Any

from confide.report.check import tables
from confide.report.check.endings import definitions, lists, provenance, section
from confide.report.check.maps import ERRORS, Case
from confide.report.check.markup import Safe, join, picture, tag
from confide.report.check.numbers import Curve, Figure, Reliability, Shares, figures
from confide.report.check.pixels import Colour
from confide.report.check.svg import draw, peak
from confide.report.check.words import measured, percent, taken_for, title

Data = Mapping[str, Any]
MOST = 2000  # classes listed, of all inputs together
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
    data = {**data, "checks": [_fewer_classes(check, MOST // len(data["checks"])) for check in data["checks"]]}
    checks = data["checks"]
    body = [
        *_head(data),
        *_comparisons(data),
        *_numbers(checks),
        *_maps(cases),
        *(part for check in checks for part in lists(check, len(checks) > 1)),
        definitions(checks[0]["result"]),
        provenance(data),
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


def _fewer_classes(check: Data, most: int) -> Data:
    """With no more classes than the page has room for: those of largest ECE."""
    rows = check["result"]["classes"]
    if len(rows) <= most:
        return check
    worst = sorted(rows, key=lambda row: -(row["ece"] or 0.0))[:most]
    return {**check, "result": {**check["result"], "classes": sorted(worst, key=lambda row: row["class"])}}


def _asset(name: str) -> str:
    return resources.files("confide.report.check").joinpath(name).read_text(encoding="utf-8")


def _embedded(data: Data) -> str:
    """All numbers, in a form that no text in them can break out of."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


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
        yield section(
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
        yield section("Numbers", tag("div", table, panels[0], class_="split"))
        yield section("Figures", tag("div", *panels[1:], class_="panels"))
        return
    yield section("Numbers", table)
    for name in names:
        alike = [one[name] for one in drawn if name in one]
        panels = [_figure(name, figure, named=True, top=max(map(peak, alike))) for figure in alike]
        yield section(NAMES[name], tag("p", SAYS[name], class_="quiet"), tag("div", *panels, class_="panels"))


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
    ramp = tag("span", "", class_="ramp", style=f"background:{cases[0].ramp}")
    legend = [
        tag("p", "Error: ", *starmap(_swatch, ERRORS.items()), class_="quiet"),
        tag("p", "Confidence: 0", ramp, "1", class_="quiet"),
    ]
    blocks = [tag("div", tag("h3", case.title), _quiet(case.words), _row(case), class_="case") for case in cases]
    yield section("Maps", *legend, *blocks)


def _swatch(name: str, colour: Colour) -> Safe:
    return join(tag("span", "", class_="swatch", style=f"background:rgb{colour}"), name)


def _row(case: Case) -> Safe:
    figures = [
        tag("figure", picture(f"{name} of {case.title}", source), tag("figcaption", name))
        for name, source in case.pictures
    ]
    return tag("div", *figures, class_="maps")
