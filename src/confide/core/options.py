"""Options that come as names, from a file or a command line, for a function that takes them."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any

from confide.core.errors import InputError


def options_of(make: Callable[..., Any]) -> list[str]:
    """What may be given by name."""
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return [name for name, parameter in signature(make).parameters.items() if parameter.kind in kinds]


def check_options(make: Callable[..., Any], names: Iterable[str], what: str) -> None:
    """Refuse names that nobody takes, before they become a TypeError that does not say which there are."""
    known = options_of(make)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise InputError(f"{what} has no option {name!r}; {hint}it has {', '.join(known) or 'none'}")
