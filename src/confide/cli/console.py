"""Where text goes, and which characters it may use."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import metadata
from typing import NoReturn

from rich.console import Console

WIDEST = 120  # longer lines are hard to read
PROSE = 100  # the widest that running text may get
INDENT = (0, 0, 0, 2)


@dataclass(frozen=True)
class Glyphs:
    """The characters that not every terminal has."""

    braille: bool
    corner: str
    wall: str
    tick: str
    thin: str
    thick: str
    plus_minus: str
    dot: str


FANCY = Glyphs(braille=True, corner="└", wall="│", tick="┤", thin="─", thick="━", plus_minus="±", dot="·")
PLAIN = Glyphs(braille=False, corner="+", wall="|", tick="|", thin="-", thick="=", plus_minus="+-", dot=".")


def open_console() -> Console:
    """Standard output, never wider than reads well."""
    console = Console(highlight=False)
    console.width = min(console.width, WIDEST)
    return console


def glyphs(console: Console) -> Glyphs:
    """Plain ones where the encoding of the output lacks the fancy ones."""
    try:
        "└│┤─━±·⣿".encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return FANCY


def version() -> str:
    """The version of the installed package."""
    try:
        return metadata.version("confide")
    except metadata.PackageNotFoundError:  # run from a checkout that was never installed
        return "(not installed)"


def refuse(message: str) -> NoReturn:
    """Bad input: one sentence on stderr, exit code 2."""
    print(f"confide: {message}", file=sys.stderr)
    sys.exit(2)
