"""Tables of the page. Each cell that shows a number also carries it in full, for sorting and for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confide.report.check.advice import class_title
from confide.report.check.markup import Safe, tag
from confide.report.check.words import NOTHING, interval, measured, signed

Data = Mapping[str, Any]
KINDS = {
    "calibration": "Calibration",
    "score": "Scores: calibration and accuracy in one",
    "ranking": "Ranking: does confidence tell right from wrong?",
    "overlap": "Overlap",
}


def metrics(checks: Sequence[Data]) -> Safe:
    """Every metric of every input, by kind."""
    heads = [tag("th", "Metric", scope="col")]
    heads += [tag("th", words, scope="col") for _ in checks for words in ("Value", "95 % interval", "By chance")]
    above = [tag("th", ""), *(tag("th", check["name"], colspan="3", scope="colgroup") for check in checks)]
    head = tag("thead", tag("tr", *above, class_="above") if len(checks) > 1 else None, tag("tr", *heads))
    rows: list[Safe] = []
    kind = ""
    for lines in zip(*(check["result"]["metrics"] for check in checks), strict=True):
        if lines[0]["kind"] != kind:
            kind = lines[0]["kind"]
            rows.append(tag("tr", tag("td", KINDS[kind], colspan=str(1 + 3 * len(checks))), class_="kind"))
        rows.append(_metric(lines))
    return scroll(tag("table", head, tag("tbody", *rows), id="metrics"))


def _metric(lines: Sequence[Data]) -> Safe:
    cells = [tag("td", lines[0]["metric"], title=lines[0]["definition"])]
    for line in lines:
        chance = None if line["key"] == "signed_gap" else line["chance"]
        cells += [number(line["value"]), tag("td", interval(line), class_="interval")]
        cells += [tag("td", "") if chance is None else number(chance)]
    return tag("tr", *cells, data_key=lines[0]["key"])


def changes(compared: Data, check: Data) -> Safe:
    """Paired differences; the other input has the names of the metrics."""
    names = {row["key"]: row["metric"] for row in check["result"]["metrics"]}
    rows = [
        tag(
            "tr",
            tag("td", names[row["key"]]),
            *(number(row[key]) for key in ("a", "b")),
            number(row["difference"], signed(row["difference"])),
            tag("td", interval(row), class_="interval"),
            tag("td", row["verdict"], class_="left"),
            data_key=row["key"],
        )
        for row in compared["changes"]
    ]
    heads = ("Metric", compared["a"], compared["b"], "Difference", "95 % interval", "")
    return scroll(_table(heads, rows, sortable=False, name="changes"))


def classes(check: Data) -> Safe:
    """Every class that the document lists."""
    result, names = check["result"], check["class_names"]
    keys = ["accuracy", "frequency", "predicted", "probability", "gap", "ece", *(["iou", "dice"] * result["dense"])]
    rows = [
        tag(
            "tr",
            tag("td", class_title(row["class"], names), data_v=str(row["class"])),
            number(row["count"], f"{row['count']:,.0f}"),
            *(number(row[key], signed(row[key])) if key == "gap" else number(row[key]) for key in keys),
        )
        for row in result["classes"]
    ]
    heads = ("Class", "n", "Recall", "Frequency", "Predicted", "Probability", "Gap", "ECE", "IoU", "Dice")
    return scroll(_table(heads[: 2 + len(keys)], rows, name="classes"), tall=len(rows) > 20)


def groups(check: Data) -> Safe:
    """Every group; small ones are marked."""
    rows = []
    for row in check["result"]["groups"]:
        ece, gap = row["ece"], row["gap"]
        rows.append(
            tag(
                "tr",
                tag("td", f"{row['column']} = {row['value']}"),
                number(row["n"]),
                number(row["accuracy"]),
                number(gap["value"], signed(gap["value"])),
                number(ece["value"]),
                tag("td", interval(ece), class_="interval"),
                *(number(row[key]) for key in ("nll", "brier")),
                tag("td", "too few to judge" if row["too_few"] else "", class_="left"),
                class_="few" if row["too_few"] else None,
            )
        )
    heads = ("Group", "n", "Accuracy", "Gap", "ECE", "95 % interval", "NLL", "Brier", "")
    return scroll(_table(heads, rows, name="groups"), tall=len(rows) > 20)


def units(result: Data) -> Safe:
    """The units of largest ECE."""
    keys = ("accuracy", "confidence", "gap", "ece", "nll", "brier")
    rows = [
        tag("tr", tag("td", str(row["unit"])), number(row["n"]), *(number(row[key]) for key in keys))
        for row in result["units"]["worst"]
    ]
    return scroll(_table(("Unit", "n", "Accuracy", "Confidence", "Gap", "ECE", "NLL", "Brier"), rows, name="units"))


def misses(check: Data) -> Safe:
    """The surest errors."""
    names = check["class_names"]
    rows = [
        tag(
            "tr",
            tag("td", str(row["row"])),
            number(row["confidence"], measured(row["confidence"], 6)),
            *(tag("td", class_title(row[key], names), data_v=str(row[key])) for key in ("predicted", "label")),
        )
        for row in check["misses"]
    ]
    return scroll(_table(("Row", "Confidence", "Predicted", "Label"), rows, name="misses"))


def number(value: float | None, shown: str | None = None) -> Safe:
    """A cell with a number."""
    words = NOTHING if value is None else shown or measured(value)
    return tag("td", words, data_v="" if value is None else repr(value))


def scroll(content: Safe, tall: bool = False) -> Safe:
    """Wide tables scroll by themselves on a phone, long ones everywhere but in print."""
    return tag("div", content, class_="scroll tall" if tall else "scroll", tabindex="0")


def _table(heads: Sequence[str], rows: Sequence[Safe], sortable: bool = True, name: str = "") -> Safe:
    titles = [
        tag("th", tag("button", head, type="button") if sortable and head else head, scope="col") for head in heads
    ]
    kind = " ".join(filter(None, ("sortable" if sortable else "", name)))
    return tag("table", tag("thead", tag("tr", *titles)), tag("tbody", *rows), class_=kind)
