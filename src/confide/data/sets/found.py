"""Where the files of a data set are, and what to say when they are not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from confide.core.errors import InputError

SHOWN = 6
PARTS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


def home(what: str, root: Path, names: Sequence[str], below: Sequence[str] = ()) -> Path:
    """The folder that has all of these: root, or one below it. Names may end in `.gz` on disk."""
    if not root.is_dir():
        raise InputError(f"{what} is looked for in {str(root)!r}, which is no folder")
    folders = [root, *(root / name for name in below)]
    for folder in folders:
        if all(_there(folder, name) for name in names):
            return folder
    best = max(folders, key=lambda folder: sum(_there(folder, name) for name in names))
    missing = [name for name in names if not _there(best, name)]
    where = f", or in {' or '.join(repr(name) for name in below)} in it" if below else ""
    raise InputError(
        f"{what} needs {some(names)} in {str(root)!r}{where}; missing in {str(best)!r}: {some(missing)}. "
        f"It holds {holds(best)}"
    )


def some(names: Sequence[str]) -> str:
    """A list of names, cut where it gets long."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def holds(folder: Path) -> str:
    """What is in a folder, in a few words."""
    if not folder.is_dir():
        return "nothing, since there is no such folder"
    return some(sorted(child.name + "/" * child.is_dir() for child in folder.iterdir())) or "nothing"


def part_of(folders: Sequence[str]) -> str:
    """The part that the name of a folder says, also as `trainannot`; empty if none does."""
    words = [re.sub(r"annot$", "", folder.lower()) for folder in folders]
    return next((PARTS[word] for word in words if word in PARTS), "")


def _there(folder: Path, name: str) -> bool:
    return (folder / name).exists() or (folder / f"{name}.gz").is_file()
