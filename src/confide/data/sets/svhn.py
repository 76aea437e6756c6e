"""Street View House Numbers, cropped digits: train_32x32.mat and test_32x32.mat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from confide.core.errors import InputError
from confide.data.sets.found import home
from confide.data.sets.mat import read_mat
from confide.data.sets.official import official
from confide.data.split import Part, Split

NAMES = ("train_32x32.mat", "test_32x32.mat")


def svhn(root: Path, *, seed: int = 1, val: float = 0.1, resplit: bool = False) -> Split:
    """SVHN, 32 x 32 RGB bytes; the digit 0 is stored as 10."""
    folder = home("SVHN", root, NAMES, ("SVHN", "svhn"))
    train, test = (_part(folder / name) for name in NAMES)
    return official(train, test, tuple("0123456789"), seed, val, resplit)


def _part(path: Path) -> Part:
    found = read_mat(path)
    if not {"X", "y"} <= set(found) or found["X"].shape[:3] != (32, 32, 3):
        shapes = {name: values.shape for name, values in found.items()}
        raise InputError(f"{str(path)!r} needs X of (32, 32, 3, N) and y of (N, 1); it holds {shapes}")
    images = np.ascontiguousarray(found["X"].transpose(3, 2, 0, 1))
    return Part(torch.from_numpy(images), torch.from_numpy(found["y"].reshape(-1).astype(np.int64) % 10))
