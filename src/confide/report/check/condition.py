"""Conditions such as `ece_low > 0.03 and accuracy >= 90%`: comparisons joined by `and` and `or`, nothing else."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from confide.core.errors import InputError, KnobError

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ENDS = ("_low", "_high", "_chance")  # of the 95 % interval, and what chance alone would show
TOKEN = re.compile(
    r"\s*(?:(?P<op><=|>=|<|>)|(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?)|(?P<name>[A-Za-z]\w*))"
)
Values = Mapping[str, float | None]


@dataclass(frozen=True)
class Comparison:
    """Two sides, each a name or a number."""

    left: str | float
    sign: str
    right: str | float


@dataclass(frozen=True)
class Condition:
    """It holds if all comparisons of one of its alternatives hold."""

    text: str
    alternatives: tuple[tuple[Comparison, ...], ...]

    def names(self) -> list[str]:
        """Every name, in order."""
        sides = [side for one in self.alternatives for c in one for side in (c.left, c.right)]
        return list(dict.fromkeys(side for side in sides if isinstance(side, str)))

    def check(self, known: list[str]) -> None:
        """Refuse names that nothing stands for."""
        for name in self.names():
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f", did you mean {near[0]}?" if near else ""
                raise KnobError(f"--fail-if knows no {name!r}{hint or '.'} There are {_listed(known)}")

    def holds(self, values: Values) -> bool:
        """Whether it is true of these numbers."""
        self.check(list(values))
        if missing := [name for name in self.names() if values[name] is None]:
            raise InputError(f"--fail-if cannot be judged: these data give no {missing[0]}")
        return any(all(_true(c, values) for c in one) for one in self.alternatives)


def _listed(known: list[str]) -> str:
    """Every name once, its ends apart."""
    plain = [name for name in known if not name.endswith(ENDS)]
    return f"{', '.join(plain)}; most also as NAME{', NAME'.join(ENDS)}"


def parse(text: str) -> Condition:
    """Read a condition."""
    tokens, place = [], 0
    while text[place:].strip():
        if (found := TOKEN.match(text, place)) is None:
            raise _refusal(text, text[place:].strip()[0])
        tokens.append(found)
        place = found.end()
    words: list[str] = [token[0].strip() for token in tokens]
    alternatives = tuple(tuple(_comparison(text, part) for part in _split(one, "and")) for one in _split(words, "or"))
    return Condition(text, alternatives)


def _split(words: list[str], by: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word.lower() == by:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _comparison(text: str, words: list[str]) -> Comparison:
    if len(words) != 3 or words[1] not in OPERATORS or words[0] in OPERATORS or words[2] in OPERATORS:
        raise _refusal(text, " ".join(words))
    return Comparison(_side(words[0]), words[1], _side(words[2]))


def _side(word: str) -> str | float:
    if word[0].isalpha():
        return word
    return float(word[:-1]) / 100 if word.endswith("%") else float(word)


def _true(one: Comparison, values: Values) -> bool:
    left, right = (values[side] if isinstance(side, str) else side for side in (one.left, one.right))
    assert left is not None
    assert right is not None
    return OPERATORS[one.sign](left, right)


def _refusal(text: str, where: str) -> KnobError:
    return KnobError(
        f"--fail-if {text!r} is not understood at {where!r}: write NAME < <= > or >= NUMBER, such as 'ece_low > 0.03', "
        "joined by and, or"
    )
