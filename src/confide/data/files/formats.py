"""From a path to its arrays, by the ending of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from confide.core.errors import InputError
from confide.data.files.array import Arrays, guarded
from confide.data.files.nifti import read_nifti
from confide.data.files.npy import read_npy, read_npz
from confide.data.files.tables import read_csv, read_jsonl, read_parquet
from confide.data.files.tensors import read_pt, read_safetensors

READERS: Mapping[str, Callable[[Path], Arrays]] = {
    ".npz": read_npz,
    ".npy": read_npy,
    ".pt": read_pt,
    ".pth": read_pt,
    ".safetensors": read_safetensors,
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".tsv": read_csv,
    ".jsonl": read_jsonl,
    ".jsonl.gz": read_jsonl,
    ".parquet": read_parquet,
    ".nii": read_nifti,
    ".nii.gz": read_nifti,
}
PICKLED = (".pkl", ".pickle", ".joblib")


def ending(path: Path) -> str | None:
    """The ending by which a file is read, if it is one of READERS."""
    found = [end for end in READERS if path.name.lower().endswith(end)]
    return max(found, key=len, default=None)


def stem(path: Path) -> str:
    """The name of a file without that ending."""
    return path.name[: len(path.name) - len(ending(path) or path.suffix)]


def arrays_of(path: Path) -> Arrays:
    """Every array of a file, none of them read yet."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    end = ending(path)
    if end is None:
        what = (
            "is a pickle, which is not opened because it could run code" if path.suffix in PICKLED else "is not known"
        )
        raise InputError(f"{str(path)!r} {what}; what can be read: {', '.join(READERS)}, or a folder of such files")
    with guarded(path):
        return READERS[end](path)
