"""A knob: one setting, whose range is data that can be checked, tested and printed."""

import math
import operator
from typing import Any

from confide.core.errors import KnobError


class Knob:
    """A class attribute that checks what is assigned to it; the value itself lives on the instance."""

    def __init__(
        self,
        default: Any,
        low: float,
        high: float,
        step: int,
        choices: tuple[Any, ...],
        kind: tuple[type, ...],
        alias: str | None,
        doc: str,
    ) -> None:
        self.default, self.low, self.high, self.step = default, low, high, step
        self.choices, self.kind, self.doc = choices, kind, doc
        self.keyword = alias or ""
        self.attribute = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.attribute = name
        self.keyword = self.keyword or name

    def __set__(self, instance: object, value: Any) -> None:
        instance.__dict__[self.attribute] = self.check(value)

    @property
    def range(self) -> str:
        """The allowed values, for people."""
        if self.choices:
            return " | ".join([*map(repr, self.choices), *(kind.__name__ for kind in self.kind)])
        steps = "" if self.step == 1 else f" in steps of {self.step}"
        return "any integer" if math.isinf(self.low) else f"{self.low:g} to {self.high:g}{steps}"

    def check(self, value: Any) -> Any:
        """The value in the type of the default, or an error that says what would be allowed."""
        try:
            if isinstance(value, self.kind):
                return value
            if self.choices:
                return self.choices[self.choices.index(value)]
            number = operator.index(value) if isinstance(self.default, int) else float(value)
            between = self.step != 1 and (number - self.low) % self.step
            if not isinstance(value, (bool, str)) and self.low <= number <= self.high and not between:
                return number
        except (TypeError, ValueError):
            pass
        raise KnobError(f"{self.keyword}={value!r} is not possible: {self.keyword} ({self.doc}) takes {self.range}")


def knob(
    *,
    default: Any,
    low: float = -math.inf,
    high: float = math.inf,
    step: int = 1,
    choices: tuple[Any, ...] = (),
    kind: tuple[type, ...] = (),
    alias: str | None = None,
    doc: str,
) -> Any:
    """Declare a knob; typed as what it will hold, so that `margin: float = knob(default=10.0, ...)` reads true.

    `alias` is its name as an argument, where the attribute needs another one. Beside its `choices` a knob may take any
    object of a `kind`.
    """
    return Knob(default, low, high, step, choices, kind, alias, doc)


def knobs_of(kind: type) -> dict[str, Knob]:
    """The knobs that a class declares itself by their names as arguments, in the order in which they are written."""
    return {value.keyword: value for value in vars(kind).values() if isinstance(value, Knob)}
