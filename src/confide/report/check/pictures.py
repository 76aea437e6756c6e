"""The picture that belongs to a case: found by its name, brought to the size of the labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core.errors import InputError, MissingExtra
from confide.data.files.formats import arrays_of, ending
from confide.report.check.pixels import Pixels, grey

PHOTOS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")
ARRAYS = (".npy", ".nii", ".nii.gz")


def picture_of(folder: Path, name: str, shape: Sequence[int], cut: tuple[int, int] | None) -> Pixels:
    """As (H, W, 3), a slice of it where the case is a volume."""
    if not folder.is_dir():
        raise InputError(f"--images {str(folder)!r} is no folder")
    file = _find(folder, name)
    if file.suffix.lower() in PHOTOS:
        return _fitted(grey(_photo(file)), shape)
    values = next(iter(arrays_of(file).values())).all()
    flat = _plane(values, tuple(shape), cut, file)
    return _fitted(grey(flat), [n for k, n in enumerate(shape) if cut is None or k != cut[0]])


def _find(folder: Path, name: str) -> Path:
    """`name.png`, `name_0000.nii.gz` as nnU-Net has it, or 007.png for row 7."""
    files = [file for file in sorted(folder.iterdir()) if file.suffix.lower() in PHOTOS or ending(file) in ARRAYS]
    stems = {file: file.name.split(".")[0] for file in files}
    number = str(int(name)) if name.isdigit() else name
    for wanted, known in (
        (name, stems),
        (f"{name}_0000", stems),
        (number, {file: stem.lstrip("0") or "0" for file, stem in stems.items()}),
    ):
        if found := [file for file, stem in known.items() if stem == wanted]:
            return found[0]
    held = ", ".join(file.name for file in files[:3]) or "none that can be read"
    raise InputError(f"{str(folder)!r} has no picture named {name!r}; it has {held}")


def _photo(file: Path) -> NDArray[Any]:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtra("pillow", "plots") from error
    with Image.open(file) as picture:
        return np.asarray(picture.convert("RGB"))


def _plane(values: NDArray[Any], shape: tuple[int, ...], cut: tuple[int, int] | None, file: Path) -> NDArray[Any]:
    """Of an array with the axes of the labels, maybe in reverse as NIfTI has them, and maybe with channels."""
    dims = len(shape)
    if values.shape == shape[::-1] and values.shape != shape:
        values = values.transpose()
    if values.ndim == dims + 1 and values.shape[1:] == shape:
        values = np.moveaxis(values, 0, -1)
    if values.shape[:dims] != shape:
        raise InputError(f"{str(file)!r} has shape {values.shape}, which does not fit labels of shape {shape}")
    flat = values if cut is None else values.take(cut[1], cut[0])
    return flat if flat.ndim == 2 or flat.shape[-1] == 3 else flat[..., 0]


def _fitted(pixels: Pixels, shape: Sequence[int]) -> Pixels:
    """The nearest pixel for each label."""
    rows, columns = (np.arange(n) * size // n for n, size in zip(shape, pixels.shape[:2], strict=True))
    found: Pixels = pixels[rows][:, columns]
    return found
