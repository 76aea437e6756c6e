"""One named array of a file, read a slab at a time, so that memory does not grow with the file."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from pickle import UnpicklingError
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from confide.core.errors import InputError

Values: TypeAlias = NDArray[Any]
FLOATS = ("bfloat16", "float16", "float32", "float64", "longdouble", "float128")
HOW = "save it with numpy.savez(path, logits=..., labels=...)"
BROKEN = (
    UnpicklingError,
    BadZipFile,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    zlib.error,
    lzma.LZMAError,
)


@dataclass(frozen=True, eq=False)
class Array:
    """A name, a shape, and a way to get `slab(start, stop, axis)`, which is part of the array along one axis."""

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: str
    slab: Callable[[int, int, int], Values]
    in_order: bool = False  # reading far ahead, or going back, costs as much as reading all before

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} {self.shape}"

    @property
    def floating(self) -> bool:
        """Whether it holds floating point numbers."""
        return self.dtype in FLOATS

    @property
    def whole(self) -> bool:
        """Whether it holds integers or booleans."""
        return self.dtype.startswith(("int", "uint", "bool"))

    @property
    def text(self) -> bool:
        """Whether it holds strings."""
        return self.dtype == "text"

    def read(self, start: int, stop: int, axis: int = 0) -> Values:
        """The part between two places on one axis. A broken file is an InputError."""
        with guarded(self.path):
            return self.slab(start, min(stop, self.shape[axis]), axis)

    def all(self) -> Values:
        """The whole array."""
        if not self.shape:
            with guarded(self.path):
                return self.slab(0, 1, 0)
        return self.read(0, self.shape[0])

    def mapped(self, change: Callable[[Values], Values], dtype: str | None = None) -> Array:
        """The same array with every slab changed, value by value."""
        slab = self.slab
        return replace(self, dtype=dtype or self.dtype, slab=lambda a, b, axis: change(slab(a, b, axis)))

    def reversed(self) -> Array:
        """The same array with its axes in the opposite order."""
        slab, last = self.slab, len(self.shape) - 1
        return replace(self, shape=self.shape[::-1], slab=lambda a, b, axis: slab(a, b, last - axis).T)

    def reshaped(self, shape: tuple[int, ...]) -> Array:
        """The same array with axes of length 1 added or dropped; the other axes keep their order."""
        slab = self.slab
        place = _long_axes(shape, self.shape)

        def cut(start: int, stop: int, axis: int) -> Values:
            part = slab(start, stop, place[axis]) if axis in place else slab(0, self.shape[0], 0)
            return part.reshape(*shape[:axis], -1, *shape[axis + 1 :])

        return replace(self, shape=shape, slab=cut)


Arrays: TypeAlias = Mapping[str, Array]


def _long_axes(new: tuple[int, ...], old: tuple[int, ...]) -> dict[int, int]:
    """Where the axes longer than 1 stood before."""
    pairs = zip(
        (i for i, size in enumerate(new) if size != 1), (i for i, size in enumerate(old) if size != 1), strict=True
    )
    return dict(pairs)


def in_memory(path: Path, name: str, values: Values) -> Array:
    """An array that is small enough to be held."""

    def cut(start: int, stop: int, axis: int) -> Values:
        return values if not values.shape else values[(slice(None),) * axis + (slice(start, stop),)]

    return Array(path, name, values.shape, kind_of(values.dtype), cut)


def stack(members: Sequence[Array]) -> Array:
    """Columns of one table as one array, classes last."""
    name = "+".join(a.name for a in members)

    def cut(start: int, stop: int, axis: int) -> Values:
        rows = (start, stop) if axis == 0 else (0, members[0].shape[0])
        return np.stack([a.read(*rows) for a in (members if axis == 0 else members[start:stop])], axis=1)

    shape = (members[0].shape[0], len(members))
    dtype = members[0].dtype if members[0].floating else "float64"
    return replace(members[0], name=name, shape=shape, dtype=dtype, slab=cut)


def kind_of(dtype: np.dtype[Any]) -> str:
    """The name of a dtype for people; text of any width is text."""
    if dtype.kind in "US":
        return "text"
    return dtype.newbyteorder("=").name


def native(values: Values) -> Values:
    """Numbers in the machine's own byte order, and no wider than torch knows."""
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        return values.astype(np.float64)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def read_slab(
    file: IO[bytes], offset: int, dtype: np.dtype[Any], shape: tuple[int, ...], cut: tuple[int, int, int]
) -> Values:
    """Part of an array in C order that begins at `offset`, by seeking and reading.

    Not by mapping the file: pages that were touched count as memory until they are unmapped.
    """
    start, stop, axis = cut if shape else (0, 1, 0)
    shape = shape or (1,)
    outer, inner = (int(np.prod(part, dtype=np.int64)) for part in (shape[:axis], shape[axis + 1 :]))
    out = np.empty((outer, stop - start, inner), dtype)
    for i in range(outer):
        file.seek(offset + (i * shape[axis] + start) * inner * dtype.itemsize)
        _fill(file, out[i])
    return native(out.reshape(*shape[:axis], stop - start, *shape[axis + 1 :]))


def _fill(file: IO[bytes], out: Values) -> None:
    buffer = out.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(buffer):
        got = file.readinto(buffer[done:])  # type: ignore[attr-defined]  # every binary file has it
        if not got:
            raise EOFError("the file ends too early")
        done += got


class Copy:
    """A copy on disk of a stream, which can then be read at any place; gone with the last array that needs it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.file = TemporaryFile()  # noqa: SIM115
        copyfileobj(stream, self.file, 1 << 20)

    def __del__(self) -> None:
        self.file.close()


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Turn the many errors of a broken file into one that says which file, and what would be read."""
    try:
        yield
    except InputError:
        raise
    except BROKEN as error:
        raise InputError(f"{str(path)!r} {_fault(error, path)}: {HOW}") from error


def _fault(error: Exception, path: Path) -> str:
    if "Object arrays" in str(error) or (isinstance(error, UnpicklingError) and "global" in str(error).lower()):
        return "holds Python objects, which are not opened because they could run code"
    return f"is not a readable {path.suffix or 'prediction'} file"
