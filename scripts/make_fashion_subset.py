"""Draw the small, class-balanced Fashion-MNIST subset that ships with confide from the original IDX files.

Usage: python scripts/make_fashion_subset.py SOURCE_FOLDER OUTPUT.npz
"""

from __future__ import annotations

import argparse
import io
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from confide.data.sets.idx import read_idx

Bytes = NDArray[np.uint8]

SEED = 0
PER_CLASS = {"train": 600, "val": 100, "test": 350}
# A ZIP entry stores its date; a fixed one keeps the file the same, byte for byte, on every run.
ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def read_pair(source: Path, prefix: str) -> tuple[Bytes, Bytes]:
    """Read the images and labels of one official set."""
    images = read_idx(source / f"{prefix}-images-idx3-ubyte.gz")
    labels = read_idx(source / f"{prefix}-labels-idx1-ubyte.gz")
    if len(images) != len(labels):
        raise ValueError(f"{prefix}: {len(images)} images but {len(labels)} labels")
    return images, labels


def draw(labels: Bytes, sizes: list[int], rng: np.random.RandomState) -> list[NDArray[np.intp]]:
    """Draw disjoint index sets that hold `sizes[i]` members of every class, each in the source order."""
    parts: list[list[NDArray[np.intp]]] = [[] for _ in sizes]
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        if sum(sizes) > len(members):
            raise ValueError(f"class {label} has {len(members)} images, {sum(sizes)} wanted")
        for part, chunk in zip(parts, np.split(members, np.cumsum(sizes)), strict=False):
            part.append(chunk)
    return [np.sort(np.concatenate(part)) for part in parts]


def write_npz(output: Path, arrays: dict[str, Bytes]) -> None:
    """Write a NumPy archive with LZMA entries, which `np.load` reads and which is 14 % smaller than deflate."""
    with zipfile.ZipFile(output, "w") as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", ZIP_DATE)
            entry.compress_type = zipfile.ZIP_LZMA
            entry.create_system = 3  # otherwise the byte differs between Windows and Unix
            archive.writestr(entry, buffer.getvalue())


def subset(source: Path) -> dict[str, Bytes]:
    """Draw train and val from the official training set and test from the official test set."""
    # RandomState, unlike default_rng, promises the same stream in every NumPy version.
    rng = np.random.RandomState(SEED)
    images, labels = read_pair(source, "train")
    train, val = draw(labels, [PER_CLASS["train"], PER_CLASS["val"]], rng)
    test_images, test_labels = read_pair(source, "t10k")
    (test,) = draw(test_labels, [PER_CLASS["test"]], rng)
    return {
        "train_images": images[train],
        "train_labels": labels[train],
        "val_images": images[val],
        "val_labels": labels[val],
        "test_images": test_images[test],
        "test_labels": test_labels[test],
    }


def main() -> None:
    """Read the command line and write the subset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="folder with the four original .gz files")
    parser.add_argument("output", type=Path, help="the .npz file to write")
    args = parser.parse_args()
    arrays = subset(args.source)
    write_npz(args.output, arrays)
    print({name: array.shape for name, array in arrays.items()}, args.output.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
