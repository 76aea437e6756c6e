"""CIFAR-10 and CIFAR-100, as binary files or as python batches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from confide.core.errors import InputError
from confide.data.sets.found import home
from confide.data.sets.official import official
from confide.data.sets.unpickle import read_batch, texts
from confide.data.split import Part, Split

PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Layout:
    """The files of one form of the set; in a binary row the label is the last of `label_bytes` before the pixels."""

    what: str
    folder: str
    train: tuple[str, ...]
    test: str
    names: str
    label_bytes: int = 0  # none: a python batch
    label_key: str = "labels"
    names_key: str = "label_names"


BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))
TEN = (
    Layout("CIFAR-10", "cifar-10-batches-py", BATCHES, "test_batch", "batches.meta"),
    Layout(
        "CIFAR-10",
        "cifar-10-batches-bin",
        tuple(f"{name}.bin" for name in BATCHES),
        "test_batch.bin",
        "batches.meta.txt",
        label_bytes=1,
    ),
)
HUNDRED = (
    Layout("CIFAR-100", "cifar-100-python", ("train",), "test", "meta", 0, "fine_labels", "fine_label_names"),
    Layout("CIFAR-100", "cifar-100-binary", ("train.bin",), "test.bin", "fine_label_names.txt", label_bytes=2),
)


def cifar10(root: Path, *, seed: int = 1, val: float = 0.1, resplit: bool = False) -> Split:
    """CIFAR-10, 32 x 32 RGB bytes."""
    return _read(root, TEN, seed, val, resplit)


def cifar100(root: Path, *, seed: int = 1, val: float = 0.1, resplit: bool = False) -> Split:
    """CIFAR-100 with its hundred fine labels."""
    return _read(root, HUNDRED, seed, val, resplit)


def _read(root: Path, layouts: tuple[Layout, Layout], seed: int, val: float, resplit: bool) -> Split:
    python, binary = layouts
    there = any((folder / binary.test).is_file() for folder in (root, root / binary.folder))
    layout = binary if there else python
    folder = home(layout.what, root, (*layout.train, layout.test, layout.names), (layout.folder,))
    read = _binary if layout.label_bytes else _python
    train, test = read(folder, layout.train, layout), read(folder, (layout.test,), layout)
    return official(train, test, _names(folder / layout.names, layout), seed, val, resplit)


def _names(path: Path, layout: Layout) -> tuple[str, ...]:
    if layout.label_bytes:
        return tuple(path.read_text(encoding="utf-8").split())
    return texts(read_batch(path)[layout.names_key])


def _binary(folder: Path, names: tuple[str, ...], layout: Layout) -> Part:
    row = layout.label_bytes + PIXELS
    parts = []
    for name in names:
        raw = np.fromfile(folder / name, np.uint8)
        if not raw.size or raw.size % row:
            raise InputError(f"{str(folder / name)!r} has {raw.size:,} bytes, which is no multiple of {row:,}")
        parts.append(raw.reshape(-1, row))
    rows = np.concatenate(parts)
    return _part(rows[:, layout.label_bytes :], rows[:, layout.label_bytes - 1])


def _python(folder: Path, names: tuple[str, ...], layout: Layout) -> Part:
    images, labels = [], []
    for name in names:
        batch = read_batch(folder / name)
        missing = [key for key in ("data", layout.label_key) if key not in batch]
        if missing:
            raise InputError(f"{str(folder / name)!r} has no {missing[0]!r}; it holds {', '.join(batch)}")
        images.append(batch["data"])
        labels += batch[layout.label_key]
    return _part(np.concatenate(images), np.asarray(labels))


def _part(pixels: NDArray[np.uint8], labels: NDArray[np.generic]) -> Part:
    images = np.ascontiguousarray(pixels).reshape(-1, 3, 32, 32)
    return Part(torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64)))
