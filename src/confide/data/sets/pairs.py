"""Images with a mask each: PASCAL VOC 2012, CamVid, and any folder or zip archive of such pairs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile

import numpy as np

from confide.core.errors import InputError
from confide.data.sets.found import holds, home, part_of, some
from confide.data.sets.pictures import SUFFIXES, Masked, Source, open_image
from confide.data.split import Rows, Split, Stream
from confide.data.splitting import by_unit

VOC_CLASSES = (
    *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)
CAMVID_CLASSES = (
    *("sky", "building", "pole", "road", "pavement", "tree", "sign", "fence", "car", "pedestrian", "bicyclist"),
)
VOID = 255
AUGMENTED = ("train_aug.txt", "trainaug.txt")
MASKS = ("mask", "masks", "label", "labels", "annotation", "annotations", "annot", "gt", "groundtruth", "labelstr")
MARK = re.compile(r"[ _-](mask|label|labels|gt|seg|segmentation|annotation)$", re.IGNORECASE)
SHARES = (70, 10, 20)
Pair = tuple[Source, Source]


def voc2012(root: Path, *, augmented: bool = False, size: int = 512, longest: int = 640, test: int = 480) -> Split:
    """PASCAL VOC 2012: train.txt (1,464) or the augmented list (10,582); val.txt is val and test, as in the papers."""
    folders = ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation/train.txt", "ImageSets/Segmentation/val.txt")
    folder = home("PASCAL VOC 2012", root, folders, ("VOC2012", "VOCdevkit/VOC2012"))
    train = _listed(folder, _augmented_list(folder) if augmented else "train.txt")
    val = Stream(_listed(folder, "val.txt"), Masked(size=(test, test), longest=test, ignore=VOID))
    how = f"{'the augmented list' if augmented else 'train.txt'}; val.txt is both val and test, as in the papers, so "
    how += "choosing on it flatters the result"
    crops = Stream(train, Masked(size=(size, size), longest=longest, ignore=VOID))
    return Split(crops, val, val, VOC_CLASSES, how, VOID)


def camvid(root: Path) -> Split:
    """CamVid with eleven classes, as train/ and trainannot/, val/, test/ in a folder or a zip archive."""
    return image_masks(root, classes=CAMVID_CLASSES, ignore_index=len(CAMVID_CLASSES))


def image_masks(
    root: Path,
    *,
    classes: Sequence[str] = (),
    ignore_index: int = VOID,
    size: tuple[int, int] | None = None,
    unit: str = "",
    seed: int = 1,
    memory: float = 1e9,
) -> Split:
    """Any images and masks of the same names, in parallel folders or marked `_mask`; parts by folder, or divided.

    `unit` is a regular expression that finds the subject in a name, so that nobody is in two parts. Sets up to `memory`
    bytes whose images have one size, or are given one, are loaded.
    """
    parts, units, how = _divided(_pairs(root), unit, seed)
    everything = [pair for pairs in parts.values() for pair in pairs]
    values = _values([mask for _, mask in everything]) if not classes else set()
    scale = 255 if values == {0, 255} else 1  # black and white
    highest = max((value // scale for value in values if scale > 1 or value != ignore_index), default=0)
    names = tuple(classes) or tuple(f"class {i}" for i in range(highest + 1))
    read = Masked(size=size, ignore=ignore_index, mode=_mode(everything[0][0]), scale=scale)
    loaded = _fits(everything, size, memory)
    train, val, test = (_rows(parts[name], units, read, loaded) for name in ("train", "val", "test"))
    return Split(train, val, test, names, how, ignore_index)


def _augmented_list(folder: Path) -> str:
    lists = folder / "ImageSets/Segmentation"
    found = [name for name in AUGMENTED if (lists / name).is_file()]
    if not found or not (folder / "SegmentationClassAug").is_dir():
        raise InputError(
            f"the augmented VOC needs {' or '.join(AUGMENTED)} in {str(lists)!r} and the masks of the Semantic "
            f"Boundaries Dataset in {str(folder / 'SegmentationClassAug')!r}"
        )
    return found[0]


def _listed(folder: Path, name: str) -> tuple[Pair, ...]:
    """Lines of a name each, or of two paths as some augmented lists have."""
    masks = folder / ("SegmentationClassAug" if name in AUGMENTED else "SegmentationClass")
    lines = (folder / "ImageSets/Segmentation" / name).read_text(encoding="utf-8").split("\n")
    stems = [PurePosixPath(line.split()[0]).stem for line in lines if line.strip()]
    pairs = tuple((Source(str(folder / f"JPEGImages/{s}.jpg")), Source(str(masks / f"{s}.png"))) for s in stems)
    lost = [str(source) for pair in pairs for source in pair if not Path(source.name).is_file()]
    if lost or not pairs:
        raise InputError(f"{name} lists {len(pairs):,} images; {len(lost):,} files of these are missing: {some(lost)}")
    return pairs


def _listing(root: Path) -> Mapping[str, Source]:
    """Image files below a folder or in an archive, by their path in it."""
    if root.is_file():
        try:
            with ZipFile(root) as archive:
                names = [name for name in archive.namelist() if name.lower().endswith(SUFFIXES)]
        except BadZipFile as error:
            raise InputError(f"{str(root)!r} is neither a folder nor a zip archive") from error
        return {name: Source(name, root) for name in sorted(names)}
    archives = sorted(root.glob("*.zip")) if root.is_dir() else []
    files = [path for path in sorted(root.rglob("*")) if path.suffix.lower() in SUFFIXES and path.is_file()]
    if not files and len(archives) == 1:
        return _listing(archives[0])
    return {path.relative_to(root).as_posix(): Source(str(path)) for path in files}


def _part_of(name: str) -> str:
    return part_of(PurePosixPath(name).parts[:-1])


def _is_mask(name: str) -> bool:
    path = PurePosixPath(name)
    folders = [word.lower() for word in path.parts[:-1]]
    return bool(MARK.search(path.stem)) or any(word in MASKS or word.endswith("annot") for word in folders)


def _pairs(root: Path) -> dict[tuple[str, str], Pair]:
    """Image and mask by part and name."""
    images: dict[tuple[str, str], Source] = {}
    masks: dict[tuple[str, str], Source] = {}
    for name, source in _listing(root).items():
        group = masks if _is_mask(name) else images
        group[_part_of(name), MARK.sub("", PurePosixPath(name).stem)] = source
    lost = [str(images[key]) for key in images if key not in masks]
    if lost or not images:
        raise InputError(
            f"{str(root)!r} should hold images and masks of the same names, such as images/a.png and masks/a.png, "
            f"a.png and a_mask.png, or train/a.png and trainannot/a.png; {len(images)} images were found, "
            f"{len(lost)} without a mask{': ' + some(lost) if lost else ''}. It holds {holds(root)}"
        )
    return {key: (images[key], masks[key]) for key in images}


def _divided(
    pairs: Mapping[tuple[str, str], Pair], unit: str, seed: int
) -> tuple[dict[str, list[Pair]], dict[Pair, str], str]:
    """By folder where there are parts; the parts that are missing are taken from train, by subject."""
    units = {pair: _unit(name, unit) for (_, name), pair in pairs.items()}
    parts: dict[str, list[Pair]] = {"train": [], "val": [], "test": []}
    for (part, _), pair in pairs.items():
        parts[part or "train"].append(pair)
    lacking = [name for name in ("val", "test") if not parts[name]]
    how = "parts by folder"
    if lacking:
        by = " by subject" if unit else ""
        how = f"{' and '.join(lacking)} taken{by} from {'train' if len(lacking) < 2 else 'all'} with seed {seed}"
        whole, counts = parts["train"], [SHARES[0], *(SHARES[1 if name == "val" else 2] for name in lacking)]
        rows = by_unit([units[pair] for pair in whole], counts, seed)
        for name, index in zip(("train", *lacking), rows, strict=True):
            parts[name] = [whole[i] for i in index]
    return parts, units if unit else {}, how


def _unit(name: str, pattern: str) -> str:
    if not pattern:
        return name
    found = re.search(pattern, name)
    if found is None:
        raise InputError(f"the pattern {pattern!r} finds no subject in {name!r}")
    return found.group(1 if found.re.groups else 0)


def _values(masks: Sequence[Source]) -> set[int]:
    values: set[int] = set()
    for source in masks:
        values |= set(np.unique(np.array(open_image(source))).tolist())
    return values


def _mode(source: Source) -> str:
    return "L" if open_image(source).mode in ("1", "L", "I", "I;16", "F") else "RGB"


def _fits(pairs: Sequence[Pair], size: tuple[int, int] | None, memory: float) -> bool:
    sizes = {size[::-1]} if size else {open_image(image).size for image, _ in pairs}
    width, height = max(sizes)
    return len(sizes) == 1 and 4 * width * height * len(pairs) <= memory


def _rows(pairs: Sequence[Pair], units: Mapping[Pair, str], read: Masked, loaded: bool) -> Rows:
    stream = Stream(tuple(pairs), read, None, tuple(units[pair] for pair in pairs) if units else ())
    return stream.load() if loaded else stream
