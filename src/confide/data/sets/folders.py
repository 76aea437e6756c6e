"""Folders of images with a class each: Tiny-ImageNet, ImageNet, CUB-200, and your own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from confide.core.errors import InputError
from confide.data.sets.found import holds, home
from confide.data.sets.pictures import SUFFIXES, Classified, Source
from confide.data.split import Read, Split, Stream
from confide.data.splitting import held_out, held_out_by_class

TINY_HELD, IMAGENET_HELD = 50, 10  # images of each class that are held out


def tiny_imagenet(root: Path, *, seed: int = 1, held: int = TINY_HELD) -> Split:
    """Tiny-ImageNet in memory (1.3 GB): 50 of each class held out of train, the official 10,000 as test set."""
    folder = home("Tiny-ImageNet", root, ("train", "val", "wnids.txt"), ("tiny-imagenet-200",))
    classes = tuple(sorted((folder / "wnids.txt").read_text(encoding="utf-8").split()))
    train = _by_class(folder / "train", classes, Classified())
    test = _annotated(folder / "val", classes)
    stay, rest = held_out_by_class(_labels(train), held, seed)
    how = f"{held} of each class of the official training set, drawn with seed {seed}, for validation; official "
    how += "validation set as test set"
    return Split(train.take(stay).load(), train.take(rest).load(), test.load(), classes, how)


def imagenet(root: Path, *, seed: int = 1, held: int = IMAGENET_HELD, size: int = 224) -> Split:
    """ImageNet as train/CLASS/* and val/CLASS/*: 10 of each class of the official validation set to choose on."""
    folder = home("ImageNet", root, ("train", "val"), ("imagenet", "ILSVRC/Data/CLS-LOC"))
    classes = _classes(folder / "train")
    read = Classified(resize=size * 256 // 224, crop=size, inception=True)
    train, official = (_by_class(folder / name, classes, read) for name in ("train", "val"))
    stay, rest = held_out_by_class(_labels(official), held, seed)
    how = f"{held} of each class of the official validation set, drawn with seed {seed}, for validation; the rest is "
    return Split(train, official.take(rest), official.take(stay), classes, how + "the test set")


def cub200(root: Path, *, size: int = 224) -> Split:
    """CUB-200-2011, resized to 256 x 256 and cropped; as in the paper, val is the test set."""
    names = ("images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt", "images")
    folder = home("CUB-200-2011", root, names, ("CUB_200_2011",))
    files, labels, train, classes = (_table(folder / name) for name in names[:-1])
    read = Classified(resize=(size * 256 // 224,) * 2, crop=size)
    parts = []
    for wanted in ("1", "0"):
        keys = [key for key in files if train[key] == wanted]
        items = tuple((Source(str(folder / "images" / files[key])), int(labels[key]) - 1) for key in keys)
        parts.append(_stream(items, read))
    how = "official training and test set; val is the test set, as in the paper, so choosing on it flatters the result"
    return Split(parts[0], parts[1], parts[1], tuple(classes.values()), how)


def image_folder(root: Path, *, seed: int = 1, val: float = 0.1, test: float = 0.2, size: int = 224) -> Split:
    """Any images in a folder a class: under train/, val/ and test/, or all together, which are then divided."""
    read = Classified(resize=size * 256 // 224, crop=size, inception=True)
    given = [name for name in ("train", "val", "test") if (root / name).is_dir()]
    top = root / "train" if "train" in given else root
    classes = _classes(top)
    whole = _by_class(top, classes, read)
    said = [f"folder {name!r}" for name in given] or ["one folder"]
    shares = {name: share for name, share in (("test", test), ("val", val)) if name not in given}
    parts = {name: _by_class(root / name, classes, read) for name in given if name != "train"}
    for name, share in shares.items():
        stay, rest = held_out(len(whole), share, seed)
        whole, parts[name] = whole.take(stay), whole.take(rest)
        said.append(f"{share:g} of the rows left, shuffled with seed {seed}, as {name}")
    return Split(whole, parts["val"], parts["test"], classes, "; ".join(said))


def images_in(folder: Path) -> list[Path]:
    """Image files anywhere below a folder, sorted."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())


def _classes(folder: Path) -> tuple[str, ...]:
    found = tuple(sorted(child.name for child in folder.iterdir() if child.is_dir())) if folder.is_dir() else ()
    if len(found) < 2:
        raise InputError(f"{str(folder)!r} should have a folder of images for each class; it holds {holds(folder)}")
    return found


def _by_class(folder: Path, classes: Sequence[str], read: Read) -> Stream:
    items = [(path, label) for label, name in enumerate(classes) for path in images_in(folder / name)]
    missing = sorted({*range(len(classes))} - {label for _, label in items})
    if missing:
        raise InputError(
            f"{str(folder / classes[missing[0]])!r} holds no image ({len(missing)} of {len(classes)} classes); "
            f"images end in {', '.join(SUFFIXES)}"
        )
    return _stream(tuple((Source(str(path)), label) for path, label in items), read)


def _annotated(folder: Path, classes: Sequence[str]) -> Stream:
    """Tiny-ImageNet's val: one folder, and a table that names the class of each file."""
    table = home("Tiny-ImageNet's validation set", folder, ("images", "val_annotations.txt")) / "val_annotations.txt"
    rows = (line.split("\t") for line in table.read_text(encoding="utf-8").splitlines())
    number = {name: label for label, name in enumerate(classes)}
    items = tuple((Source(str(folder / "images" / row[0])), number[row[1]]) for row in rows)
    return _stream(items, Classified())


def _table(path: Path) -> dict[str, str]:
    """Lines of a key and a value."""
    pairs = (line.split(maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return {key: value.strip() for key, value in pairs}


def _stream(items: tuple[tuple[Source, int], ...], read: Read) -> Stream:
    return Stream(items, read, torch.from_numpy(np.asarray([label for _, label in items], np.int64)))


def _labels(stream: Stream) -> torch.Tensor:
    assert stream.labels is not None
    return stream.labels
