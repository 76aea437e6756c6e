"""`confide suggest`: a margin and a strength from saved logits."""

from __future__ import annotations

from pathlib import Path

from rich.padding import Padding
from rich.text import Text

from confide.analysis.margins import suggest
from confide.cli.console import INDENT, PROSE, open_console
from confide.data.opening import load


def run(path: Path, ignore_index: int, dim: int | None) -> None:
    """Read, ask, and print what comes back."""
    found = load(path, dim)
    answer = suggest(found.logits, found.labels, ignore_index=ignore_index)
    console = open_console()
    width = min(console.width, PROSE)
    console.print(Text(f"{path}: {', '.join(found.names)}", "dim"), soft_wrap=True)
    for title, text in answer.sections():
        console.print()
        console.print(Text(title, "bold"))
        console.print(Padding(Text(text), INDENT, expand=False), width=width)
