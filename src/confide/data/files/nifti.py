"""NIfTI volumes. Axes come in the order (z, y, x), as SimpleITK gives them and nnU-Net saves its probabilities."""

from __future__ import annotations

import gzip
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from confide.core.errors import MissingExtra
from confide.data.files.array import Array, Arrays, Copy, Values, kind_of, read_slab


def read_nifti(path: Path) -> Arrays:
    """The volume, named after the file."""
    name = path.name.removesuffix(".gz").removesuffix(".nii")
    header = _header(path)
    shape = tuple(int(size) for size in header.shape[::-1])
    scaled = (header.slope, header.inter) != (1.0, 0.0)
    copies: list[Copy] = []

    def cut(start: int, stop: int, axis: int) -> Values:
        if path.suffix == ".gz" and not copies:
            with gzip.open(path) as stream:
                copies.append(Copy(stream))  # type: ignore[arg-type]  # a binary stream as any other
        with nullcontext(copies[0].file) if copies else path.open("rb") as file:
            part = read_slab(file, header.offset, header.dtype, shape, (start, stop, axis))
        return part * header.slope + header.inter if scaled else part

    return {name: Array(path, name, shape, "float64" if scaled else kind_of(header.dtype), cut)}


def _header(path: Path) -> Any:
    """Nibabel knows where the numbers begin and how they are scaled; the file keeps them in Fortran order."""
    try:
        import nibabel
        from nibabel.filebasedimages import ImageFileError
    except ModuleNotFoundError as error:
        raise MissingExtra("nibabel", "nifti") from error
    try:
        return nibabel.load(path).dataobj  # type: ignore[attr-defined]  # every spatial image has it
    except ImageFileError as error:
        raise ValueError(str(error)) from error
