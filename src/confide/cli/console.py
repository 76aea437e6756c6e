"""Where text goes, and which characters it may use."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path
from typing import NoReturn, TypeVar

from rich.console import Console

WIDEST = 120  # longer lines are hard to read
PROSE = 100  # the widest that running text may get
INDENT = (0, 0, 0, 2)

Kind = TypeVar("Kind")


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


def check_output(path: Path, ending: str) -> None:
    """Refuse what could not be written, before any work is done."""
    if path.suffix != ending:
        refuse(f"cannot write {str(path)!r}: the file name must end in {ending}")
    if not path.absolute().parent.is_dir():
        refuse(f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}")


def find_class(name: str, kinds: Sequence[type[Kind]], what: str, where: str) -> type[Kind]:
    """The class of that name, whatever its case, dashes and underscores."""
    known = {kind.__name__.lower(): kind for kind in kinds}
    wanted = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    if wanted not in known:
        near = get_close_matches(wanted, known, n=1)
        hint = f"; did you mean {known[near[0]].__name__}?" if near else ""
        refuse(f"no {what} {name!r}{hint} ({where})")
    return known[wanted]
