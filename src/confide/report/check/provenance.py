"""Where numbers come from: files with their hashes, versions, the command."""

from __future__ import annotations

import datetime
import hashlib
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from confide.data.predictions import Predictions

BLOCK = 1 << 22


def files_of(path: Path, found: Predictions | None) -> list[dict[str, Any]]:
    """Every file that numbers came from: its name, its size and its SHA-256."""
    return [
        {"path": str(file), "bytes": file.stat().st_size, "sha256": digest(file)}
        for file in sorted(_paths(path, found))
    ]


def _paths(path: Path, found: Predictions | None) -> set[Path]:
    if found is None:
        return {path}
    layouts = [case.layout for case in found.cases]
    arrays = [a for layout in layouts for a in (layout.scores, layout.labels) if a is not None]
    arrays += [a for case in found.cases for a in case.columns]
    return {Path(array.path) for array in arrays}


def digest(file: Path) -> str:
    """SHA-256, as `sha256sum` prints it."""
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(BLOCK):
            found.update(block)
    return found.hexdigest()


def environment() -> dict[str, str]:
    """What computed the numbers."""
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "system": platform.platform(terse=True),
    }


def now() -> str:
    """The time to the second, in UTC."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def command() -> str:
    """As it was typed, but for the path of the program."""
    import shlex

    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
