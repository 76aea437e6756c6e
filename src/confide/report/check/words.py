"""Numbers and titles in words, the same in the terminal, on the page and in figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

NOTHING = "-"


def measured(value: float | None, digits: int = 4) -> str:
    """A number to so many places, fewer where it is large."""
    if value is None:
        return NOTHING
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.{digits}f}" if abs(value) < 100 else f"{value:,.1f}"


def signed(value: float | None, digits: int = 4) -> str:
    """With its sign."""
    text = measured(value, digits)
    return f"+{text}" if value is not None and value > 0 else text


def percent(value: float | None, digits: int = 1) -> str:
    """A fraction as a percentage."""
    return NOTHING if value is None else f"{100 * value:.{digits}f} %"


def interval(row: Mapping[str, Any], digits: int = 4) -> str:
    """From low to high."""
    if row["low"] is None or row["high"] is None:
        return NOTHING
    return f"{measured(row['low'], digits)} to {measured(row['high'], digits)}"


def change_words(row: Mapping[str, Any]) -> str:
    """A difference."""
    return signed(row["difference"])


def title(result: Mapping[str, Any]) -> str:
    """The verdict, and what one temperature would do, where that is known."""
    headline = str(result["verdict"]["headline"])
    return f"{headline} {found}" if (found := temperature(result["temperature"])) else headline


def temperature(found: Mapping[str, Any] | None) -> str:
    """Of what `Sample.judge` found."""
    if found is None:
        return ""
    if found["removes"] < 0.01:
        return f"One temperature, T = {found['value']:.2f}, would not lower it."
    return f"One temperature, T = {found['value']:.2f}, would remove {100 * found['removes']:.0f} % of it."


def taken_for(check: Mapping[str, Any]) -> str:
    """How many predictions, of what."""
    result = check["result"]
    what = "pixels" if result["dense"] else "predictions"
    region = result["settings"]["region"]
    where = "" if region == "all" else f", region {region}"
    units = result["units"]
    by = f"; intervals by {check['unit'] or 'unit'} ({units['count']:,})" if units else ""
    return f"{result['n']:,} {what} of {result['classes_count']} classes{where}{by}"


def name_each(paths: Sequence[Path]) -> list[str]:
    """The shortest end of each path that tells them apart."""
    parts = [path.parts for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{number + 1}: {path.name}" for number, path in enumerate(paths)]
