"""Figures for the page: inline SVG whose colours are the page's, with the numbers of each mark as its title."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, log10

from confide.report.check.markup import Safe, join, tag
from confide.report.check.numbers import Bar, Curve, Dot, Dots, Figure, Reliability, Shares
from confide.report.check.words import measured, percent

WIDE, LEFT, RIGHT, TOP, BOTTOM = 380.0, 52.0, 20.0, 12.0, 44.0
PLANE = WIDE - LEFT - RIGHT
SQUARE, FLAT, STRIP = 300.0, 210.0, 44.0  # heights of planes
LINE, NAMES, LONGEST = 22.0, 120.0, 19  # of a dot plot: height of a line, width of names, their letters


def draw(figure: Figure, top: float | None = None) -> Safe:
    """Any of the figures; `top` is what an upright axis of free length must reach."""
    if isinstance(figure, Reliability):
        return _reliability(figure)
    if isinstance(figure, Dots):
        return _dots(figure)
    highest = rising(top or peak(figure))[-1]
    return _shares(figure, highest) if isinstance(figure, Shares) else _curve(figure, highest)


def peak(figure: Figure) -> float:
    """The largest value on an upright axis of free length."""
    values = [share for *_, share in figure.bars] if isinstance(figure, Shares) else []
    values += [risk for _, risk, _ in figure.points] if isinstance(figure, Curve) else []
    return max(values, default=0.0) or 1.0


def _reliability(figure: Reliability) -> Safe:
    marks = [mark for bar in figure.bars for mark in _bar(bar)]
    diagonal = _line(LEFT, TOP + SQUARE, LEFT + PLANE, TOP, class_="reference")
    strip = TOP + SQUARE + 22
    highest = max((bar.share for bar in figure.bars), default=1.0)
    counts = [mark for bar in figure.bars for mark in _count(bar, strip, highest)]
    return _sheet(
        f"Reliability diagram: accuracy against confidence in {len(figure.bars)} bins, {figure.total:,} predictions",
        SQUARE + STRIP + 22,
        _percent_axis(SQUARE, "accuracy"),
        *marks[::2],
        diagonal,
        *marks[1::2],
        _line(LEFT, strip + STRIP, LEFT + PLANE, strip + STRIP, class_="axis"),
        *counts,
        _ticks(strip + STRIP),
        _label(LEFT + PLANE / 2, strip + STRIP + 34, "confidence"),
        _upright(strip + STRIP / 2, "count"),
    )


def _bar(bar: Bar) -> tuple[Safe, Safe]:
    """The bar itself, and the point with its interval in front of the diagonal."""
    x, width = _x(bar.lower), _x(bar.upper) - _x(bar.lower)
    back = tag("rect", class_="bar", x=x + 0.75, y=_y(bar.accuracy), width=width - 1.5, height=SQUARE * bar.accuracy)
    middle, low, high = _x(bar.confidence), _y(bar.low), _y(bar.high)
    front = tag(
        "g",
        tag("title", bar.words),
        tag("rect", class_="touch", x=x, y=TOP, width=width, height=SQUARE),
        _line(middle, low, middle, high, class_="error"),
        _line(middle - 3, low, middle + 3, low, class_="error"),
        _line(middle - 3, high, middle + 3, high, class_="error"),
        tag("circle", class_="point", cx=middle, cy=_y(bar.accuracy), r=3.2),
        class_="mark",
    )
    return back, front


def _count(bar: Bar, top: float, highest: float) -> tuple[Safe, Safe]:
    x, width = _x(bar.lower), _x(bar.upper) - _x(bar.lower)
    height = (STRIP - 12) * bar.share / highest
    rect = tag(
        "rect", tag("title", bar.words), class_="share", x=x + 0.75, y=top + STRIP - height, width=width - 1.5,
        height=height,
    )  # fmt: skip
    return rect, tag("text", compact(bar.count), class_="tiny", x=x + width / 2, y=top + STRIP - height - 3)


def _shares(figure: Shares, top: float) -> Safe:
    marks = []
    for lower, upper, count, share in figure.bars:
        height, x, width = FLAT * share / top, _x(lower), _x(upper) - _x(lower)
        words = f"confidence {percent(lower)} to {percent(upper)}: {count:,} predictions ({percent(share, 2)})"
        marks.append(
            tag(
                "g",
                tag("title", words),
                tag("rect", class_="touch", x=x, y=TOP, width=width, height=FLAT),
                tag("rect", class_="share", x=x + 0.3, y=TOP + FLAT - height, width=width - 0.6, height=height),
                class_="mark",
            )
        )
    return _sheet(
        "Histogram of confidences",
        FLAT,
        _y_axis(FLAT, top, "share of predictions"),
        _ticks(TOP + FLAT),
        _label(LEFT + PLANE / 2, TOP + FLAT + 34, "confidence"),
        *marks,
        *_rule(figure.accuracy, "accuracy", TOP + 10, "error"),
        *_rule(figure.confidence, "mean confidence", TOP + 26, "reference"),
    )


def _rule(at: float | None, name: str, y: float, kind: str) -> list[Safe]:
    """A line at a value, with its name on the side that has room."""
    if at is None:
        return []
    x, end = _x(at), "end" if at > 0.5 else "start"
    line = _line(x, TOP, x, TOP + FLAT, class_=kind)
    return [line, tag("text", f"{name} {percent(at)}", class_=f"note {end}", x=x + (-6 if end == "end" else 6), y=y)]


def _curve(figure: Curve, top: float) -> Safe:
    places = [(_x(coverage), TOP + FLAT * (1 - risk / top)) for coverage, risk, _ in figure.points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    area = f"{LEFT:.1f},{TOP + FLAT:.1f} {line} {places[-1][0]:.1f},{TOP + FLAT:.1f}" if places else ""
    return _sheet(
        "Risk-coverage curve: the error rate among the surest predictions",
        FLAT,
        _y_axis(FLAT, top, "error rate"),
        _ticks(TOP + FLAT),
        _label(LEFT + PLANE / 2, TOP + FLAT + 34, "coverage: share of predictions kept, the surest first"),
        tag("polygon", class_="area", points=area),
        tag("polyline", class_="line", points=line),
        *_touches(figure, places),
    )


def _touches(figure: Curve, places: Sequence[tuple[float, float]]) -> list[Safe]:
    """Where the pointer finds the numbers."""
    marks, before = [], LEFT
    for (coverage, risk, confidence), (x, y) in zip(figure.points, places, strict=True):
        words = f"{percent(coverage)} kept, confidence {measured(confidence)} and more: {percent(risk, 2)} wrong"
        marks.append(
            tag(
                "g",
                tag("title", words),
                tag("rect", class_="touch", x=before, y=TOP, width=max(x - before, 0.1), height=FLAT),
                tag("circle", class_="spot", cx=x, cy=y, r=3.0),
                class_="mark",
            )
        )
        before = x
    return marks


def _dots(figure: Dots) -> Safe:
    ends = [v for dot in figure.dots for v in (dot.value, dot.low, dot.high) if v is not None]
    ends += [0.0] if figure.at is None else [0.0, figure.at]
    low, high = -rising(-min(ends))[-1] if min(ends) < 0 else 0.0, rising(max(ends))[-1] if max(ends) > 0 else 0.0
    low, high = (low, high) if high > low else (low, low + 1)
    height = LINE * len(figure.dots)

    def place(value: float) -> float:
        return NAMES + (WIDE - NAMES - RIGHT) * (value - low) / (high - low)

    at = [] if figure.at is None else [_line(place(figure.at), TOP, place(figure.at), TOP + height, class_="reference")]
    ticks = [
        tag("text", measured(v, 3), class_="tick", x=place(v), y=TOP + height + 18) for v in sorted({low, 0.0, high})
    ]
    lines = [_dot(dot, TOP + LINE * (i + 0.5), place) for i, dot in enumerate(figure.dots)]
    axis = _line(NAMES, TOP + height, WIDE - RIGHT, TOP + height, class_="axis")
    label = _label(NAMES + (WIDE - NAMES - RIGHT) / 2, TOP + height + 36, figure.axis)
    return _sheet(f"{figure.axis} side by side", height, axis, *at, *lines, *ticks, label)


def _dot(dot: Dot, y: float, place: Callable[[float], float]) -> Safe:
    name = dot.name if len(dot.name) <= LONGEST else dot.name[: LONGEST - 1] + "…"
    span = [] if dot.low is None or dot.high is None else [_line(place(dot.low), y, place(dot.high), y, class_="error")]
    return tag(
        "g",
        tag("title", dot.words),
        tag("rect", class_="touch", x=0, y=y - LINE / 2, width=WIDE, height=LINE),
        tag("text", name, class_="name", x=NAMES - 8, y=y + 4),
        *span,
        tag("circle", class_="point", cx=place(dot.value), cy=y, r=3.6),
        class_="mark faint" if dot.faint else "mark",
    )


def _sheet(words: str, plane: float, *content: Safe) -> Safe:
    height = TOP + plane + BOTTOM
    return tag("svg", *content, viewBox=f"0 0 {WIDE:g} {height:g}", role="img", aria_label=words)


def _percent_axis(height: float, name: str) -> Safe:
    return join(_y_axis(height, 1.0, name), _line(LEFT, TOP + height, LEFT + PLANE, TOP + height, class_="axis"))


def _y_axis(height: float, top: float, name: str) -> Safe:
    marks, step = [], 100 * rising(top)[1]
    digits = next(d for d in range(9) if abs(step - round(step, d)) < 1e-9 or d == 8)
    for value in rising(top):
        y = TOP + height * (1 - value / top)
        marks.append(_line(LEFT, y, LEFT + PLANE, y, class_="grid" if value else "axis"))
        marks.append(tag("text", percent(value, digits), class_="tick end", x=LEFT - 6, y=y + 4))
    return join(*marks, _upright(TOP + height / 2, name))


def _ticks(y: float) -> Safe:
    return join(*(tag("text", percent(k / 5, 0), class_="tick", x=_x(k / 5), y=y + 16) for k in range(6)))


def _label(x: float, y: float, words: str) -> Safe:
    return tag("text", words, class_="label", x=x, y=y)


def _upright(y: float, words: str) -> Safe:
    return tag("text", words, class_="label", transform=f"translate(11 {y:.1f}) rotate(-90)")


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Safe:
    return tag("line", class_=class_, x1=x1, y1=y1, x2=x2, y2=y2)


def _x(share: float) -> float:
    return LEFT + PLANE * share


def _y(share: float) -> float:
    return TOP + SQUARE * (1 - share)


def rising(top: float) -> list[float]:
    """Round numbers from 0 to the first that is not below `top`, at most six."""
    size = 10.0 ** floor(log10(top))
    step = next(k * size for k in (0.2, 0.25, 0.5, 1.0, 2.0) if k * size * 5 >= top * 0.999999)
    return [k * step for k in range(ceil(top / step * 0.999999) + 1)]


def compact(count: int) -> str:
    """In four characters at most, up to 999 billion."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.1f}{letter}" if count < 9.95 * size else f"{count / size:.0f}{letter}"
    return str(count)
