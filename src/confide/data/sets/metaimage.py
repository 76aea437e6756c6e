"""MetaImage volumes (.mhd): a header of lines `Name = value`, and the numbers in a file beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from confide.core.errors import InputError
from confide.data.files.array import Array, Values, kind_of, read_slab

TYPES: Mapping[str, str] = {
    "MET_CHAR": "i1",
    "MET_UCHAR": "u1",
    "MET_SHORT": "i2",
    "MET_USHORT": "u2",
    "MET_INT": "i4",
    "MET_UINT": "u4",
    "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}


def read_metaimage(path: Path) -> Array:
    """The volume with its axes in the order (z, y, x)."""
    lines = (line.partition("=") for line in path.read_text(encoding="latin-1").splitlines())
    head = {key.strip(): value.strip() for key, _, value in lines}
    raw = path.with_name(head.get("ElementDataFile", "LOCAL"))
    if head.get("ElementType") not in TYPES or head.get("CompressedData") == "True" or not raw.is_file():
        raise InputError(
            f"{str(path)!r} needs plain numbers in a file beside it; it says ElementType {head.get('ElementType')}, "
            f"CompressedData {head.get('CompressedData', 'False')}, ElementDataFile {raw.name}"
        )
    order = ">" if head.get("ElementByteOrderMSB", head.get("BinaryDataByteOrderMSB")) == "True" else "<"
    dtype = np.dtype(order + TYPES[head["ElementType"]])
    shape = tuple(int(size) for size in head["DimSize"].split()[::-1])

    def cut(start: int, stop: int, axis: int) -> Values:
        with raw.open("rb") as file:
            return read_slab(file, 0, dtype, shape, (start, stop, axis))

    return Array(raw, path.stem, shape, kind_of(dtype), cut)
