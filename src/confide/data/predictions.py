"""Read saved predictions from an .npz file: logits, and labels if there are any (from an .npy file logits alone).

Nothing in the file can run code: pickled objects are refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray
from torch import Tensor

from confide.core.errors import InputError

Arrays = Mapping[str, NDArray[Any]]
LOGITS = "logits"
LABELS = ("labels", "targets", "label", "target")
HOW = "save it with numpy.savez(path, logits=..., labels=...)"


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a network said about some data, and what was right."""

    logits: Tensor
    labels: Tensor | None
    names: tuple[str, ...]  # of the arrays that were read


def load(path: Path) -> Predictions:
    """The array `logits`, or the only floating point one with two axes or more, and `labels` or `targets` if there."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            return _read(archive if isinstance(archive, NpzFile) else {LOGITS: archive}, path)
    except InputError:
        raise
    except (BadZipFile, EOFError, OSError, ValueError, zlib.error) as error:
        raise InputError(f"{str(path)!r} {_fault(error)}: {HOW}") from error


def _read(arrays: Arrays, path: Path) -> Predictions:
    """An archive reads an array when it is asked for it: what else is in there does not matter."""
    logits = LOGITS if LOGITS in arrays else _only_floats(arrays, path)
    labels = next((name for name in LABELS if name in arrays), None)
    return Predictions(
        _floats(np.asarray(arrays[logits]), logits, path),
        None if labels is None else _integers(np.asarray(arrays[labels]), labels, path),
        (logits,) if labels is None else (logits, labels),
    )


def _fault(error: Exception) -> str:
    if "Object arrays" in str(error):
        return "holds Python objects, which are not opened because they could run code"
    return "is not a readable .npz file"


def _only_floats(arrays: Arrays, path: Path) -> str:
    arrays = {name: np.asarray(array) for name, array in arrays.items()}  # what is no array comes as bytes
    found = [name for name, array in arrays.items() if array.dtype.kind == "f" and array.ndim >= 2]
    if len(found) == 1:
        return found[0]
    held = ", ".join(f"{name} {array.dtype} {array.shape}" for name, array in arrays.items()) or "nothing"
    what = "several arrays that could be logits" if found else "no array of logits, floating point with a class axis"
    raise InputError(f"{str(path)!r} has {what}; it holds {held}: {HOW}")


def _floats(array: NDArray[Any], name: str, path: Path) -> Tensor:
    if array.dtype.kind != "f" or array.ndim < 2:
        raise InputError(
            f"{name!r} in {str(path)!r} is {array.dtype} {array.shape}: logits are floating point, with a class axis"
        )
    # Also brings foreign byte orders, and numbers wider than torch knows, to ones that it can hold.
    return torch.from_numpy(array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64))


def _integers(array: NDArray[Any], name: str, path: Path) -> Tensor:
    whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and bool((array == np.floor(array)).all()))
    if not whole:
        raise InputError(f"{name!r} in {str(path)!r} is {array.dtype} {array.shape}: labels must be class numbers")
    return torch.from_numpy(array.astype(np.int64))
