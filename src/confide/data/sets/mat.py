"""MATLAB files of version 5, as far as data sets use them: named arrays of real numbers, compressed or not."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core.errors import InputError

COMPRESSED, MATRIX = 15, 14
NUMBERS: Mapping[int, str] = dict(
    zip((1, 2, 3, 4, 5, 6, 7, 9, 12, 13), ["i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8", "i8", "u8"], strict=True)
)
HEADER = 128  # bytes; the last two tell the byte order


def read_mat(path: Path) -> dict[str, NDArray[Any]]:
    """Every array of numbers in the file, by name."""
    raw = path.read_bytes()
    order = {b"IM": "<", b"MI": ">"}.get(raw[HEADER - 2 : HEADER])
    if order is None or raw[:6] != b"MATLAB":
        raise InputError(f"{str(path)!r} is no MATLAB file of version 5; save it with '-v7', which is the default")
    try:
        return dict(_matrices(memoryview(raw)[HEADER:], order))
    except (struct.error, zlib.error, ValueError, IndexError, KeyError) as error:
        raise InputError(f"{str(path)!r} is broken, or holds more than arrays of real numbers: {error}") from error


def _matrices(data: memoryview, order: str) -> Iterator[tuple[str, NDArray[Any]]]:
    for kind, content in _elements(data, order):
        if kind == COMPRESSED:
            yield from _matrices(memoryview(zlib.decompress(content)), order)
        elif kind == MATRIX:
            yield _matrix(content, order)


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """A tag of 8 bytes, then content that fills up to a multiple of 8; up to 4 bytes fit into the tag."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:
            yield kind & 0xFFFF, data[at + 4 : at + 4 + (kind >> 16)]
            at += 8
            continue
        if at + 8 + size > len(data):
            raise ValueError("it ends too early")
        yield kind, data[at + 8 : at + 8 + size]
        at += 8 + size + (0 if kind == COMPRESSED else -size % 8)


def _matrix(data: memoryview, order: str) -> tuple[str, NDArray[Any]]:
    """Flags, dimensions, name and numbers, in this order; MATLAB counts the first axis fastest."""
    (_, _), (_, sizes), (_, name), (kind, numbers), *_ = _elements(data, order)
    shape = np.frombuffer(sizes, f"{order}i4")
    values = np.frombuffer(numbers, order + NUMBERS[kind])
    return bytes(name).decode("ascii"), values.reshape([int(n) for n in shape], order="F")
