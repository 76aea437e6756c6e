"""`confide explain`: one word on one screen."""

from __future__ import annotations

from difflib import get_close_matches

from rich.padding import Padding
from rich.text import Text

from confide.cli.console import INDENT, PROSE, open_console, refuse
from confide.cli.terms import TERMS, Term


def print_term(name: str) -> None:
    """What it is, how it is computed, how it misleads, what to do with it."""
    term = find(name)
    console = open_console()
    width = min(console.width, PROSE)
    console.print(Text(term.title, "bold"))
    console.print(Text(term.says), width=width)
    console.print(Padding(Text(term.formula, "green"), (1, 0, 1, 2), expand=False), width=width)
    for title, text in (("How it misleads", term.trap), ("What to do", term.use)):
        console.print(Text(title, "bold"))
        console.print(Padding(Text(text), INDENT, expand=False), width=width)


def print_all() -> None:
    """Every word, and its title."""
    console = open_console()
    for name, term in TERMS.items():
        console.print(Text.assemble((f"{name:<16}", "cyan"), f"  {term.title}"))


def find(name: str) -> Term:
    """By any of its names, whatever case and dashes."""
    known = {_plain(alias): term for key, term in TERMS.items() for alias in (key, term.title, *term.also)}
    if _plain(name) not in known:
        near = get_close_matches(_plain(name), known, n=1, cutoff=0.7)
        hint = f"; did you mean {known[near[0]].title}?" if near else ""
        refuse(f"no term {name!r}{hint} (confide explain lists all)")
    return known[_plain(name)]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
