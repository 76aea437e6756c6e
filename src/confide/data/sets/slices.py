"""Slices of volumes: from NIfTI or MetaImage files, or from h5 and npz files that hold an image and a mask."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from confide.core.errors import InputError, MissingExtra
from confide.data.files.array import Array, Arrays, in_memory
from confide.data.files.formats import arrays_of
from confide.data.naming import LABELS
from confide.data.sets.found import part_of
from confide.data.sets.metaimage import read_metaimage
from confide.data.split import Row

Values = NDArray[Any]
IMAGES = ("image", "images", "img", "data", "x", "input", "inputs")
PREPARED = (".h5", ".hdf5", ".npz")
SLICE = re.compile(r"[_-]?(slice|frame|s|z)[_-]?\d+", re.IGNORECASE)
KEPT = 6  # files that a process keeps: slices of a volume come one after the other in evaluation


@dataclass(frozen=True)
class Case:
    """One volume, or a slice by itself: whose it is, and where its channels and its mask are."""

    name: str
    subject: str
    part: str
    images: tuple[Path, ...]
    mask: Path


@dataclass(frozen=True)
class Slices:
    """Reads (case, number): a slice in [0, 1] and its mask, cut out of the middle or padded to `size`.

    Volumes are scaled by the window, or slice by slice from the least to the largest value; prepared files are left as
    they are.
    """

    size: tuple[int, int] | None = None
    relabel: Mapping[int, int] = field(default_factory=dict)
    window: tuple[float, float] | None = None

    def __call__(self, row: tuple[Case, int], _: np.random.Generator | None) -> Row:
        case, z = row
        image, mask = (_prepared_slice if case.mask.suffix in PREPARED else _volume_slice)(case, z)
        if case.mask.suffix not in PREPARED:
            image = np.stack([scaled(channel, self.window) for channel in image])
        if self.relabel:
            mask = _relabelled(mask, self.relabel)
        if self.size is not None:
            image, mask = fitted(image, self.size), fitted(mask, self.size)
        return torch.from_numpy(np.ascontiguousarray(image, np.float32)), torch.from_numpy(mask.astype(np.uint8))


def rows_in(cases: Iterable[Case]) -> list[tuple[Case, int]]:
    """Every slice of every case."""
    return [(case, z) for case in cases for z in range(_depth(case))]


def prepared(root: Path) -> list[Case]:
    """Files of h5 or npz below a folder, a volume or a slice each; the subject is the name without frame and slice."""
    files = [path for path in sorted(root.rglob("*")) if path.suffix in PREPARED] if root.is_dir() else []
    parts = [part_of(path.relative_to(root).parts[:-1]) for path in files]
    return [Case(f.stem, SLICE.sub("", f.stem), part, (f,), f) for f, part in zip(files, parts, strict=True)]


def scaled(values: Values, window: tuple[float, float] | None = None) -> Values:
    """To [0, 1], by the window or by the least and the largest value; a constant becomes 0."""
    values = values.astype(np.float32)
    low, high = window or (values.min(), values.max())
    return np.clip((values - low) / (high - low), 0, 1) if high > low else np.zeros_like(values)


def fitted(values: Values, size: tuple[int, int]) -> Values:
    """The middle of the last two axes, padded with zeros where it is smaller."""
    for axis, wanted in zip((-2, -1), size, strict=True):
        have = values.shape[axis]
        start = max(have - wanted, 0) // 2
        values = np.take(values, range(start, start + min(wanted, have)), axis)
        before = max(wanted - have, 0) // 2
        pads = [(0, 0)] * values.ndim
        pads[axis] = (before, max(wanted - have, 0) - before)
        values = np.pad(values, pads)
    return values


def _relabelled(mask: Values, relabel: Mapping[int, int]) -> Values:
    table = np.arange(max(256, int(mask.max()) + 1))
    for old, new in relabel.items():
        table[old] = new
    return table[mask.astype(np.int64)]


def _depth(case: Case) -> int:
    if case.mask.suffix in PREPARED:
        mask = _named(_header(case.mask), case.mask)[1]
        shape = _squeezed(mask.shape, case.mask)
        return 1 if len(shape) == 2 else shape[slice_axis(shape)]
    depths = {int(_volume(_header(path), path).shape[0]) for path in (*case.images, case.mask)}
    if len(depths) > 1:
        raise InputError(f"the files of {case.name} have {sorted(depths)} slices: {case.mask.parent}")
    return depths.pop()


def _volume_slice(case: Case, z: int) -> tuple[Values, Values]:
    *image, mask = (_volume(_arrays(path), path).read(z, z + 1)[0] for path in (*case.images, case.mask))
    return np.stack(image), mask


def _prepared_slice(case: Case, z: int) -> tuple[Values, Values]:
    """The axis of slices is the one whose length is not height or width; channels come before it."""
    image, mask = _named(_arrays(case.mask), case.mask)
    shape = _squeezed(mask.shape, case.mask)
    if len(shape) == 2:
        plane = image.all()
        plane = np.moveaxis(plane, -1, 0) if plane.ndim == 3 and plane.shape[:2] == shape else plane
        return plane.reshape(-1, *shape), mask.all().reshape(shape)
    axis = slice_axis(shape)
    part, truth = (_at(array, z, axis + len(array.shape) - len(shape)) for array in (image, mask))
    size = shape[:axis] + shape[axis + 1 :]
    return part.reshape(-1, *size), truth.reshape(size)


def _at(array: Array, place: int, axis: int) -> Values:
    part: Values = np.take(array.read(place, place + 1, axis), 0, axis)
    return part


def slice_axis(shape: tuple[int, ...]) -> int:
    """Which axis of a volume counts its slices: the odd one where two are equal, or else the shortest."""
    for axis in (0, 2, 1):
        others = shape[:axis] + shape[axis + 1 :]
        if others[0] == others[1] != shape[axis]:
            return axis
    return 0 if len(set(shape)) == 1 else shape.index(min(shape))


def _squeezed(shape: tuple[int, ...], path: Path) -> tuple[int, ...]:
    """Without leading axes of length 1 beyond a volume's three."""
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    if not 2 <= len(shape) <= 3:
        raise InputError(f"a mask has two or three axes; that of {str(path)!r} has shape {shape}")
    return shape


def _named(arrays: Arrays, path: Path) -> tuple[Array, Array]:
    image = next((arrays[name] for name in IMAGES if name in arrays), None)
    mask = next((arrays[name] for name in LABELS if name in arrays), None)
    if image is None or mask is None:
        raise InputError(
            f"{str(path)!r} should hold an image ({', '.join(IMAGES[:3])}) and a mask (label, mask, seg); it holds "
            f"{', '.join(map(str, arrays.values())) or 'nothing'}"
        )
    return image, mask


def _header(path: Path) -> Arrays:
    """What is in a file, before any number is read."""
    if path.suffix == ".mhd":
        return {path.stem: read_metaimage(path)}
    return read_h5(path) if path.suffix in PREPARED[:2] else arrays_of(path)


def _arrays(path: Path) -> Arrays:
    return _opened(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=KEPT)
def _opened(path: Path, _changed: int) -> Arrays:
    """What is compressed is unpacked into memory: an open file would share its place with those of forked workers."""
    arrays = _header(path)
    if path.suffix not in (".gz", ".npz"):
        return arrays
    return {name: in_memory(path, name, array.all()) for name, array in arrays.items()}


def _volume(arrays: Arrays, path: Path) -> Array:
    array = next(iter(arrays.values()))
    if len(array.shape) != 3:
        raise InputError(f"{str(path)!r} should be a volume of three axes; it is {array.shape}")
    return array


def read_h5(path: Path) -> Arrays:
    """The arrays at the top of an HDF5 file, read when they are asked for."""
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise MissingExtra("h5py", "h5") from error

    def array(name: str, shape: tuple[int, ...], dtype: str) -> Array:
        def cut(start: int, stop: int, axis: int) -> Values:
            with h5py.File(path, "r") as file:
                values: Values = file[name][(slice(None),) * axis + (slice(start, stop),)]
                return values

        return Array(path, name, shape, dtype, cut)

    try:
        with h5py.File(path, "r") as file:
            found = {name: item for name, item in file.items() if isinstance(item, h5py.Dataset)}
            return {name: array(name, item.shape, item.dtype.name) for name, item in found.items()}
    except OSError as error:
        raise InputError(f"{str(path)!r} is no readable HDF5 file: {error}") from error
