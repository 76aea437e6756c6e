"""Tensors saved by torch (weights only, so nothing in the file runs) and by safetensors.

Both are mapped anew for every slab: pages that were touched count as memory until the file is unmapped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from confide.core.errors import InputError, MissingExtra
from confide.data.files.array import Array, Arrays, Values, in_memory


def read_pt(path: Path) -> Arrays:
    """Every tensor of a .pt file; lists of names or numbers become columns."""
    return {name: _of(path, name, value) for name, value in _flat(path.stem, _load(path))}


def _load(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError as error:
        if "mmap can only be used" not in str(error):
            raise
        return torch.load(path, map_location="cpu", weights_only=True)  # written by torch 1.5 or older


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A mapping is named by its keys; a pair such as (logits, labels) by position."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(str(key), item)
    elif isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
        if len(value) > 4:
            raise InputError(
                f"{name!r} is a list of {len(value)} tensors: join the batches with torch.cat(...) before torch.save, "
                "and save one dictionary with 'logits' and 'labels'"
            )
        for place, item in enumerate(value):
            yield from _flat(str(place), item)
    elif isinstance(value, (Tensor, list, tuple)):
        yield name, value


def _of(path: Path, name: str, value: Any) -> Array:
    if not isinstance(value, Tensor):
        return in_memory(path, name, np.asarray(value))

    def cut(start: int, stop: int, axis: int) -> Values:
        return to_numpy(_part(dict(_flat(path.stem, _load(path)))[name], start, stop, axis))

    return Array(path, name, tuple(value.shape), str(value.dtype).removeprefix("torch."), cut)


def _part(tensor: Tensor, start: int, stop: int, axis: int) -> Tensor:
    return tensor.detach().narrow(axis, start, stop - start) if tensor.dim() else tensor.detach()


def to_numpy(tensor: Tensor) -> Values:
    """A copy; bfloat16, which numpy does not know, becomes float32 without loss."""
    tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor.clone()
    return tensor.numpy()


def read_safetensors(path: Path) -> Arrays:
    """Every tensor of a .safetensors file."""
    try:
        from safetensors import SafetensorError, safe_open
    except ModuleNotFoundError as error:
        raise MissingExtra("safetensors", "safetensors") from error

    def cut(name: str, start: int, stop: int, axis: int) -> Values:
        with safe_open(path, framework="pt") as file:
            part = file.get_slice(name)
            place = (slice(None),) * axis + (slice(start, stop),)
            return to_numpy(part[place] if part.get_shape() else file.get_tensor(name))

    def array(name: str, shape: list[int], code: str) -> Array:
        return Array(path, name, tuple(shape), _dtype(code), lambda a, b, axis: cut(name, a, b, axis))

    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
            return {name: array(name, part.get_shape(), part.get_dtype()) for name, part in slices.items()}
    except SafetensorError as error:
        raise ValueError(str(error)) from error


def _dtype(code: str) -> str:
    """The format writes F32, BF16, I64, U8, BOOL."""
    if code in ("BF16", "BOOL"):
        return {"BF16": "bfloat16", "BOOL": "bool"}[code]
    kind = {"F": "float", "I": "int", "U": "uint"}.get(code[0], code)
    return kind + code[1:]
