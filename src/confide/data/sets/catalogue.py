"""All data sets that can be read, by the names that recipes and the command line use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from confide.core.errors import InputError
from confide.core.options import check_options, options_of
from confide.data import fashion
from confide.data.sets.arrays import npz
from confide.data.sets.cifar import cifar10, cifar100
from confide.data.sets.folders import cub200, image_folder, imagenet, tiny_imagenet
from confide.data.sets.idx import fashion_mnist, mnist
from confide.data.sets.medical import STUDIES, medical
from confide.data.sets.newsgroups import newsgroups
from confide.data.sets.pairs import camvid, image_masks, voc2012
from confide.data.sets.svhn import svhn
from confide.data.split import Split


@dataclass(frozen=True)
class Entry:
    """A data set: what it is, and its reader."""

    about: str
    read: Callable[..., Split]
    on_disk: bool = True


SETS: Mapping[str, Entry] = {
    "fashion-mini": Entry("10,500 images of Fashion-MNIST that ship with confide", fashion.load, on_disk=False),
    "mnist": Entry("MNIST, four IDX files", mnist),
    "fashion-mnist": Entry("Fashion-MNIST, four IDX files", fashion_mnist),
    "cifar10": Entry("CIFAR-10, python batches or binary files", cifar10),
    "cifar100": Entry("CIFAR-100, python batches or binary files", cifar100),
    "svhn": Entry("SVHN, cropped digits in two .mat files", svhn),
    "tiny-imagenet": Entry("Tiny-ImageNet, folders", tiny_imagenet),
    "imagenet": Entry("ImageNet, train/ and val/ with a folder a class", imagenet),
    "cub200": Entry("CUB-200-2011 birds", cub200),
    "image-folder": Entry("your images, a folder a class", image_folder),
    "voc2012": Entry("PASCAL VOC 2012 segmentation", voc2012),
    "voc2012-aug": Entry("PASCAL VOC 2012 with the augmented training list", partial(voc2012, augmented=True)),
    "camvid": Entry("CamVid street scenes, folders or a zip archive", camvid),
    "image-masks": Entry("your images with a mask each", image_masks),
    "newsgroups": Entry("20 Newsgroups, folders or lines of a label and a text", newsgroups),
    **{name: Entry(f"{study.what}, slices of volumes", partial(medical, study)) for name, study in STUDIES.items()},
    "npz": Entry("your arrays in a .npz file", npz),
}


def read(name: str, root: Path | None = None, *, seed: int | None = None, **options: Any) -> Split:
    """A data set by its name, from the folder or file where it is; the seed matters where something is drawn."""
    if name not in SETS:
        near = get_close_matches(name, SETS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InputError(f"there is no data set {name!r}; {hint}there are {', '.join(SETS)}")
    entry = SETS[name]
    check_options(entry.read, options, name)
    if seed is not None and "seed" in options_of(entry.read):
        options["seed"] = seed
    if not entry.on_disk:
        return entry.read(**options)
    if root is None:
        raise InputError(f"{name} ({entry.about}) is on your disk, not in confide: say where, with --root")
    return entry.read(root, **options)
