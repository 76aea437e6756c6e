"""Read the pickles of CIFAR's python batches without running anything that they name.

A pickle is a program that may call any function. This reader answers every name with a stand-in of its own, which only
keeps bytes, and refuses all names that those files do not hold.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from confide.core.errors import InputError


class _DType:
    """Stands for numpy.dtype; keeps its code."""

    def __init__(self, code: str | bytes, *_: object) -> None:
        self.code = code.decode("latin1") if isinstance(code, bytes) else code

    def __setstate__(self, state: object) -> None:
        """Byte order and the like, which single bytes do not need."""


class _Bytes:
    """Stands for numpy.ndarray, whose state is (version, shape, dtype, Fortran order, bytes)."""

    def __init__(self) -> None:
        self.state: Any = None

    def __setstate__(self, state: object) -> None:
        self.state = state

    def array(self) -> NDArray[np.uint8]:
        _, shape, dtype, fortran, raw = self.state
        if dtype.code != "u1":
            raise ValueError(f"holds numbers of type {dtype.code!r}, not bytes")
        return np.frombuffer(raw, np.uint8).reshape(shape, order="F" if fortran else "C")


def _rebuild(*_: object) -> _Bytes:
    return _Bytes()


def _encode(text: str, _encoding: str = "latin1") -> bytes:
    """Python 3 writes bytes as text, which protocol 2 has no other word for."""
    return text.encode("latin1")


STAND_INS: Mapping[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _rebuild,
    ("numpy._core.multiarray", "_reconstruct"): _rebuild,
    ("numpy", "ndarray"): _Bytes,
    ("numpy", "dtype"): _DType,
    ("_codecs", "encode"): _encode,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in STAND_INS:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which could run code")
        return STAND_INS[module, name]


def read_batch(path: Path) -> dict[str, Any]:
    """The dictionary of a batch: arrays of bytes, lists and text."""
    try:
        with path.open("rb") as file:
            content = _load(file)
        if not isinstance(content, dict):
            raise ValueError(f"holds a {type(content).__name__}, not a dictionary")
        return {_text(key): value.array() if isinstance(value, _Bytes) else value for key, value in content.items()}
    except Exception as error:  # a broken pickle can raise anything
        raise InputError(f"{str(path)!r} is no CIFAR batch that can be read safely: {error}") from error


def _load(file: IO[bytes]) -> Any:
    return _Reader(file, encoding="bytes").load()


def _text(value: str | bytes) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else value


def texts(values: list[str | bytes]) -> tuple[str, ...]:
    """Names, which Python 2 wrote as bytes."""
    return tuple(_text(value) for value in values)
