"""MNIST and Fashion-MNIST: images and labels in IDX files, plain or gzipped."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from confide.core.errors import InputError
from confide.data import fashion
from confide.data.sets.found import home
from confide.data.sets.official import official
from confide.data.split import Part, Split

FILES = ("images-idx3-ubyte", "labels-idx1-ubyte")
NAMES = tuple(f"{part}-{name}" for part in ("train", "t10k") for name in FILES)


def mnist(root: Path, *, seed: int = 1, val: float = 0.1, resplit: bool = False) -> Split:
    """MNIST's digits, 28 x 28 bytes."""
    return _read("MNIST", root, ("MNIST/raw", "raw"), tuple("0123456789"), seed, val, resplit)


def fashion_mnist(root: Path, *, seed: int = 1, val: float = 0.1, resplit: bool = False) -> Split:
    """Fashion-MNIST's clothes, 28 x 28 bytes."""
    return _read("Fashion-MNIST", root, ("FashionMNIST/raw", "raw"), fashion.CLASSES, seed, val, resplit)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """An IDX file of unsigned bytes; `path` may lack its `.gz`."""
    if not path.is_file():
        path = path.with_name(f"{path.name}.gz")
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{str(path)!r} cannot be read: {error}") from error
    if raw[:3] != b"\x00\x00\x08" or len(raw) < 4 + 4 * raw[3]:
        raise InputError(f"{str(path)!r} is not an IDX file of unsigned bytes")
    shape = [int(size) for size in np.frombuffer(raw, ">u4", count=raw[3], offset=4)]
    values = np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3])
    if values.size != np.prod(shape, dtype=np.int64):
        raise InputError(f"{str(path)!r} says {shape} but has {values.size:,} bytes after that")
    return values.reshape(shape)


def _read(
    what: str, root: Path, below: tuple[str, ...], classes: tuple[str, ...], seed: int, val: float, resplit: bool
) -> Split:
    folder = home(what, root, NAMES, below)
    return official(_part(folder, "train"), _part(folder, "t10k"), classes, seed, val, resplit)


def _part(folder: Path, name: str) -> Part:
    images, labels = (torch.from_numpy(read_idx(folder / f"{name}-{file}").copy()) for file in FILES)
    return Part(images.unsqueeze(1), labels.long())
