"""NumPy's files: .npy, and .npz whether its members are compressed or not. Pickled objects are refused."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy_format

from confide.data.files.array import Array, Arrays, Copy, Values, kind_of, read_slab

LOCAL_HEADER = struct.Struct("<26xHH")  # of a zip member: the lengths of its name and of its extra field come last


def read_npy(path: Path) -> Arrays:
    """The one array of a .npy file, named after the file."""
    with path.open("rb") as file:
        header = _header(file)
        return {path.stem: _plain(path, path.stem, header, file.tell())}


def read_npz(path: Path) -> Arrays:
    """The arrays of an archive; other members are passed over. (np.savez wrote a .npy under that name? Read that.)"""
    with path.open("rb") as file:
        if file.read(6) == npy_format.MAGIC_PREFIX:
            return read_npy(path)
    with ZipFile(path) as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        return {name: _member(path, name, archive, info) for info in members if (name := info.filename[:-4])}


def _member(path: Path, name: str, archive: ZipFile, info: ZipInfo) -> Array:
    with archive.open(info) as file:
        header, skip = _header(file), file.tell()
    if info.compress_type != ZIP_STORED:
        return _compressed(path, name, header, info.filename, skip)
    with path.open("rb") as raw:
        raw.seek(info.header_offset)
        lengths = LOCAL_HEADER.unpack(raw.read(LOCAL_HEADER.size))
    return _plain(path, name, header, info.header_offset + LOCAL_HEADER.size + sum(lengths) + skip)


@dataclass(frozen=True)
class _Header:
    """What stands before the numbers. Fortran order is C order with the axes reversed."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    def cut(self, file: IO[bytes], offset: int, cut: tuple[int, int, int]) -> Values:
        if self.dtype.hasobject:
            raise ValueError("Object arrays cannot be loaded")
        if not self.fortran:
            return read_slab(file, offset, self.dtype, self.shape, cut)
        start, stop, axis = cut
        return read_slab(file, offset, self.dtype, self.shape[::-1], (start, stop, len(self.shape) - 1 - axis)).T


def _header(file: IO[bytes]) -> _Header:
    version = npy_format.read_magic(file)
    read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    return _Header(*read(file))


def _plain(path: Path, name: str, header: _Header, offset: int) -> Array:
    def cut(start: int, stop: int, axis: int) -> Values:
        with path.open("rb") as file:
            return header.cut(file, offset, (start, stop, axis))

    return Array(path, name, header.shape, kind_of(header.dtype), cut)


def _compressed(path: Path, name: str, header: _Header, member: str, skip: int) -> Array:
    """Read as a stream, which goes on where the last slab ended; any other order needs a copy on disk."""
    streams: list[IO[bytes]] = []
    copies: list[Copy] = []

    def cut(start: int, stop: int, axis: int) -> Values:
        if axis == 0 and not header.fortran:
            streams[:] = streams or [ZipFile(path).open(member)]  # noqa: SIM115  # goes on
            return header.cut(streams[0], skip, (start, stop, axis))
        if not copies:
            with ZipFile(path) as archive, archive.open(member) as stream:
                copies.append(Copy(stream))
        return header.cut(copies[0].file, skip, (start, stop, axis))

    return Array(path, name, header.shape, kind_of(header.dtype), cut)
