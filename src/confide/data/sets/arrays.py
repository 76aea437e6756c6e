"""Any npz: images, features or masks with labels, already divided or to be divided by subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from confide.core.errors import InputError
from confide.data.files.array import BROKEN, Values
from confide.data.sets.found import PARTS, holds
from confide.data.sets.slices import fitted
from confide.data.split import Part, Split
from confide.data.splitting import by_unit

INPUTS = ("image", "images", "x", "inputs", "data", "img", "features")
TARGETS = ("label", "labels", "y", "targets", "mask", "masks", "seg", "segmentation")
UNITS = ("patient", "subject", "unit", "units", "patients", "subjects", "case", "group", "volume")
SPLITS = ("split", "part", "fold")
NAMES = ("classes", "class_names", "names")
SHARES = (70, 10, 20)
Found = Mapping[str, Values]


def npz(root: Path, *, seed: int = 1, size: tuple[int, int] | None = None, classes: Sequence[str] = ()) -> Split:
    """A .npz file (or a folder with one): `image` and `label`, or `train_images`, `y_test` and so on.

    Beside them may stand `patient` or `subject` (a name a row), `split` (train, val, test or 0, 1, 2) and `classes`.
    With `shape`, a row a volume, image and label are volumes one after the other, whose slices are cut to `size`.
    """
    path = _file(root)
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name.lower(): archive[name] for name in archive.files}
    except BROKEN as error:
        raise InputError(f"{str(path)!r} cannot be read: {error}") from error
    parts = {part: _under(found, part) for part in ("train", "val", "test")}
    if parts["train"]:
        train, val, test = (_part(parts[name], path) if parts[name] else None for name in ("train", "val", "test"))
        assert train is not None
        return _given(train, val, test, _classes(found, classes, path), seed)
    whole = _slices(found, size or (64, 64), path) if "shape" in found else _part(found, path)
    names = _classes(found, classes, path)
    split = _first(found, SPLITS)
    if split is not None:
        numbers = np.asarray([_number(value) for value in split.tolist()])
        train, val, test = (whole.take(np.flatnonzero(numbers == i)) for i in range(3))
        return Split(train, val, test, names, "as the file divides it")
    return _shared(whole, SHARES, names, seed)


def _file(root: Path) -> Path:
    files = sorted(root.glob("*.npz")) if root.is_dir() else [root]
    if len(files) != 1 or not files[0].is_file():
        raise InputError(f"{str(root)!r} should be a .npz file, or a folder with one; it holds {holds(root)}")
    return files[0]


def _first(found: Found, names: Sequence[str]) -> Values | None:
    return next((found[name] for name in names if name in found), None)


def _under(found: Found, part: str) -> Found:
    """The arrays whose names begin or end with a part: train_images, y_test."""
    words = [word for word, meant in PARTS.items() if meant == part]
    return {
        name.replace(word, "", 1).strip("_"): values
        for name, values in found.items()
        for word in words
        if name.startswith(f"{word}_") or name.endswith(f"_{word}")
    }


def _part(found: Found, path: Path) -> Part:
    inputs, targets, units = (_first(found, names) for names in (INPUTS, TARGETS, UNITS))
    if inputs is None or targets is None:
        raise InputError(
            f"{str(path)!r} should hold inputs ({', '.join(INPUTS[:4])}) and targets ({', '.join(TARGETS[:4])}), also "
            f"as train_images or y_test; it holds {', '.join(f'{k} {v.shape}' for k, v in found.items()) or 'nothing'}"
        )
    targets = targets.reshape(len(targets)) if targets.size == len(targets) else targets
    names = tuple(str(value) for value in units.tolist()) if units is not None else ()
    return Part(torch.from_numpy(_channels(inputs)), _torch(targets), names)


def _channels(inputs: Values) -> Values:
    """Grey images get a channel; channels that come last move to the front."""
    if inputs.ndim == 3:
        return inputs[:, None]
    if inputs.ndim == 4 and inputs.shape[-1] in (1, 3, 4) and inputs.shape[1] > 4:
        return np.ascontiguousarray(inputs.transpose(0, 3, 1, 2))
    return inputs


def _torch(values: Values) -> torch.Tensor:
    return torch.from_numpy(values if values.dtype in (np.uint8, np.int64) else values.astype(np.int64))


def _slices(found: Found, size: tuple[int, int], path: Path) -> Part:
    """Volumes that are laid end to end, each cut along its first axis."""
    inputs, targets, units = (_first(found, names) for names in (INPUTS, TARGETS, UNITS))
    shapes = found["shape"].astype(np.int64)
    ends = np.cumsum(shapes.prod(1))
    if inputs is None or targets is None or units is None or {inputs.size, targets.size} != {int(ends[-1])}:
        raise InputError(
            f"{str(path)!r} has 'shape', so it needs an image and a label of {ends[-1]:,} values and a subject each"
        )
    images, masks, names = [], [], []
    for shape, end, unit in zip(shapes, ends, units.tolist(), strict=True):
        cut = slice(end - shape.prod(), end)
        images.append(fitted(inputs[cut].reshape(shape), size))
        masks.append(fitted(targets[cut].reshape(shape), size))
        names += [str(unit)] * int(shape[0])
    return Part(torch.from_numpy(np.concatenate(images))[:, None], _torch(np.concatenate(masks)), tuple(names))


def _number(value: object) -> int:
    if isinstance(value, str):
        return ("train", "val", "test").index(PARTS[value.lower()])
    return int(value)  # type: ignore[call-overload,no-any-return]  # numpy gave a plain number


def _classes(found: Found, classes: Sequence[str], path: Path) -> tuple[str, ...]:
    named = _first(found, NAMES)
    if classes or named is not None:
        return tuple(classes) or tuple(str(name) for name in named.tolist())  # type: ignore[union-attr]
    labels: list[NDArray[np.generic]] = [v for k, v in found.items() if any(word in TARGETS for word in k.split("_"))]
    if not all(values.dtype.kind in "iub" for values in labels):
        raise InputError(f"{str(path)!r} has labels that are no integers: {[str(v.dtype) for v in labels]}")
    return tuple(f"class {i}" for i in range(1 + max(int(values.max()) for values in labels)))


def _given(train: Part, val: Part | None, test: Part | None, classes: tuple[str, ...], seed: int) -> Split:
    """The parts of the file; one that is missing is taken from train."""
    if val is not None and test is not None:
        return Split(train, val, test, classes, "as the file divides it")
    if val is None and test is None:
        return _shared(train, SHARES, classes, seed)
    stay, held = (train.take(rows) for rows in by_unit(_units(train), (9, 1), seed))
    use = "validation" if val is None else "testing"
    how = f"a tenth of train, drawn with seed {seed}, for {use}; the rest as the file divides it"
    return Split(stay, val or held, test or held, classes, how)


def _shared(whole: Part, shares: Sequence[int], classes: tuple[str, ...], seed: int) -> Split:
    train, val, test = (whole.take(rows) for rows in by_unit(_units(whole), shares, seed))
    what = "subjects" if whole.units else "rows"
    return Split(train, val, test, classes, f"{what} divided {' / '.join(map(str, shares))} with seed {seed}")


def _units(part: Part) -> tuple[str, ...]:
    return part.units or tuple(str(row) for row in range(len(part)))
