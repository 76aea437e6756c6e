"""An audit as an npz file of plain arrays, and back. Nothing is ever unpickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from confide.core.bins import Histogram
from confide.core.errors import InputError
from confide.core.stats import Stats
from confide.metrics.audit.sums import Part, Whole

if TYPE_CHECKING:
    from os import PathLike

    from confide.metrics.audit.audit import Audit

A = TypeVar("A", bound="Audit")
SCHEMA = 1


def save(audit: Audit, path: str | PathLike[str]) -> None:
    """One array a sum; tables are stacked, their names stand in the header."""
    arrays = {f"sums/{name}": x.cpu().numpy() for name, x in audit.sums.tensors().items()}
    header: dict[str, Any] = {"schema": SCHEMA, "settings": audit.settings(), "dense": audit.dense}
    for name, table in _tables(audit).items():
        header[name] = list(table)
        arrays |= _stacked(name, list(table.values()))
    header["seen"], header["sources"] = sorted(audit._seen, key=repr), audit.sources
    header["shards"] = sorted(audit.shards) or [_digest(arrays)]
    audit.shards |= set(header["shards"])
    with Path(path).open("wb") as out:
        np.savez_compressed(out, allow_pickle=False, **arrays, header=np.array(json.dumps(header)))


def load(kind: type[A], path: str | PathLike[str]) -> A:
    """Refuse what is no audit, with the words to say so."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            header = json.loads(str(stored["header"]))
            arrays = {name: torch.from_numpy(stored[name]) for name in stored.files if name != "header"}
    except (KeyError, ValueError) as error:
        raise InputError(f"{path} holds no saved statistics of confide: {error}") from error
    if header["schema"] != SCHEMA:
        raise InputError(f"{path} has schema {header['schema']}, this version reads {SCHEMA}")
    audit = kind(**header["settings"])
    audit.sums = audit.sums.filled(_under("sums", arrays))
    audit.dense, audit.shards, audit._seen = header["dense"], set(header["shards"]), set(header["seen"])
    audit.sources = header.get("sources", [])
    whole = Whole.blank(audit.classes, audit.bins).brief()
    part = Part(Histogram.blank(audit.bins), *(whole.hit for _ in range(4)))
    audit.clusters = dict(_rows("clusters", header, arrays, whole))
    audit.units = dict(_rows("units", header, arrays, part))
    audit.groups = {tuple(k): v for k, v in _rows("groups", header, arrays, part)}
    audit.group_clusters = {(tuple(k[0]), k[1]): v for k, v in _rows("group_clusters", header, arrays, part)}
    return audit


def _tables(audit: Audit) -> dict[str, Mapping[Any, Stats]]:
    return {name: getattr(audit, name) for name in ("clusters", "units", "groups", "group_clusters")}


def _stacked(name: str, parts: Sequence[Stats]) -> dict[str, Any]:
    if not parts:
        return {}
    columns = [part.tensors() for part in parts]
    return {f"{name}/{key}": torch.stack([column[key].cpu() for column in columns]).numpy() for key in columns[0]}


def _under(name: str, arrays: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {key.removeprefix(f"{name}/"): x for key, x in arrays.items() if key.startswith(f"{name}/")}


def _rows(name: str, header: Any, arrays: Mapping[str, torch.Tensor], shape: Stats) -> list[tuple[Any, Any]]:
    columns = _under(name, arrays)
    return [(key, shape.filled({k: x[i] for k, x in columns.items()})) for i, key in enumerate(header[name])]


def _digest(arrays: Mapping[str, Any]) -> str:
    """The same data gives the same digest, so that a shard given twice is found."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(name.encode())
        found.update(np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()
