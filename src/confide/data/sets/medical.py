"""Medical volumes as slices: which files belong to a case, how its labels read, and how subjects are divided."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from confide.core.errors import InputError
from confide.data.sets.found import holds, part_of, some
from confide.data.sets.slices import Case, Slices, prepared, rows_in
from confide.data.split import Split, Stream
from confide.data.splitting import by_unit

SHARES = (70, 10, 20)
END = r"\.nii(\.gz)?$"
NNUNET = rf"(images\w*|labels?\w*|masks?)/(?P<case>(?P<subject>[^/]+?))(_0000)?{END}"


@dataclass(frozen=True)
class Study:
    """One data set: its classes, where its files are, and what the paper did with them.

    `pattern` finds `subject` and `case` in a path, and `kind`: a channel or a mask; where it has no `kind`, the folder
    tells. `size` is height and width of a slice, cut out of the middle or padded; `counts` are subjects in
    train, val and test (with two, the second is both val and test).
    """

    what: str
    classes: tuple[str, ...]
    pattern: str
    channels: tuple[str, ...] = ("",)
    mask: str = ""
    relabel: Mapping[int, int] = field(default_factory=dict)
    window: tuple[float, float] | None = None
    size: tuple[int, int] | None = None
    counts: tuple[int, ...] = SHARES


ACDC = Study(
    "ACDC",
    ("background", "right ventricle", "myocardium", "left ventricle"),
    rf"(?P<case>(?P<subject>patient\d+)_frame\d+)(?P<kind>_gt)?{END}",
    mask="_gt",
    size=(192, 192),
)
MRBRAINS = Study(
    "MRBrainS18",
    ("background", "grey matter", "white matter", "cerebrospinal fluid"),
    rf"(?P<case>(?P<subject>\d+))/(pre/)?(?P<kind>reg_T1|reg_IR|FLAIR|segm){END}",
    channels=("reg_T1", "reg_IR", "FLAIR"),
    mask="segm",
    # grey and white matter with what lies in them, fluid with the ventricles; cerebellum, brain stem and the rest are 0
    relabel={1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3, 7: 0, 8: 0, 9: 0, 10: 0},
    size=(256, 256),
    counts=(5, 2),
)
BRATS = Study(
    "BraTS19",
    ("background", "necrotic core", "oedema", "enhancing tumour"),
    rf"(?P<case>(?P<subject>BraTS19_[^/]+?))_(?P<kind>flair|t1ce|t1|t2|seg){END}",
    channels=("flair", "t1", "t1ce", "t2"),
    mask="seg",
    relabel={4: 3},
    size=(256, 256),
)
FLARE = Study("FLARE", ("background", "liver", "kidneys", "spleen", "pancreas"), NNUNET, window=(-160.0, 240.0))
PROMISE = Study(
    "PROMISE12",
    ("background", "prostate"),
    r"(?P<case>(?P<subject>Case\d+))(?P<kind>_segmentation)?\.(mhd|nii|nii\.gz)$",
    mask="_segmentation",
    size=(160, 160),
)
HIPPOCAMPUS = Study("hippocampus", ("background", "anterior", "posterior"), NNUNET, size=(64, 64))
STUDIES = {
    "acdc": ACDC,
    "mrbrains18": MRBRAINS,
    "brats19": BRATS,
    "flare": FLARE,
    "promise12": PROMISE,
    "hippocampus": HIPPOCAMPUS,
}


def medical(
    study: Study, root: Path, *, seed: int = 1, size: tuple[int, int] | None = None, memory: float = 2e9
) -> Split:
    """Slices of a study: from its own volumes, or from h5 and npz files that someone prepared.

    Files in folders train, val (or valid) and test keep these parts; otherwise subjects are divided with the seed.
    Up to `memory` bytes are loaded, more is streamed.
    """
    if (root / "training").is_dir():  # beside it are official test cases, whose masks are kept back or not used
        root = root / "training"
    cases = prepared(root) or _cases(study, root)
    if not cases:
        raise InputError(
            f"{study.what} needs volumes whose names fit {study.pattern!r} below {str(root)!r}, or .h5 or .npz files "
            f"with an image and a mask; it holds {holds(root)}"
        )
    rows = rows_in(cases)
    read = Slices(size or study.size, study.relabel, study.window)
    stream = Stream(tuple(rows), read, None, tuple(case.subject for case, _ in rows))
    parts, how = _divided(stream, [case.part for case, _ in rows], study.counts, seed)
    first, _ = read(rows[0], None)
    loaded = len(rows) * (4 * first.numel() + first[0].numel()) <= memory
    train, val = (part.load() if loaded else part for part in parts[:2])
    if parts[2] is parts[1]:
        return Split(train, val, val, study.classes, how)
    return Split(train, val, parts[2].load() if loaded else parts[2], study.classes, how)


def _cases(study: Study, root: Path) -> list[Case]:
    found: dict[tuple[str, str], dict[str, Path]] = {}
    subjects: dict[tuple[str, str], str] = {}
    for path in sorted(root.rglob("*")) if root.is_dir() else ():
        match = re.search(study.pattern, path.relative_to(root).as_posix())
        if match and path.is_file():
            key = (part_of(path.relative_to(root).parts[:-1]), match["case"])
            found.setdefault(key, {})[_kind(match, study)] = path
            subjects[key] = match["subject"]
    mask = study.mask or "mask"
    wanted = (*study.channels, mask)
    lost = [
        f"{case} has no {kind or 'image'}" for (_, case), files in found.items() for kind in wanted if kind not in files
    ]
    if lost:
        raise InputError(f"{study.what} in {str(root)!r}: {len(lost)} files are missing, {some(lost)}")
    return [
        Case(key[1], subjects[key], key[0], tuple(files[kind] for kind in study.channels), files[mask])
        for key, files in found.items()
    ]


def _kind(match: re.Match[str], study: Study) -> str:
    if "kind" in match.re.groupindex:
        return match["kind"] or ""
    return "" if match[1].startswith("images") else study.mask or "mask"


def _divided(stream: Stream, parts: list[str], counts: tuple[int, ...], seed: int) -> tuple[list[Stream], str]:
    given = set(parts)
    if "" in given and len(given) > 1:
        raise InputError(
            f"{parts.count(''):,} of {len(parts):,} slices lie outside the folders {', '.join(sorted(given - {''}))}: "
            "give all a part, or none"
        )
    if {"train", "val"} <= given or {"train", "test"} <= given:
        rows = {name: np.flatnonzero([part == name for part in parts]) for name in ("train", "val", "test")}
        val, test = (stream.take(rows[name]) if name in given else None for name in ("val", "test"))
        only = val or test
        assert only is not None
        how = "parts by folder" + ("" if val and test else "; val is test, since there is but one folder for them")
        return [stream.take(rows["train"]), val or only, test or only], how
    chosen = [stream.take(index) for index in by_unit(stream.units, counts, seed)]
    how = f"subjects divided {' / '.join(map(str, counts))} with seed {seed}"
    if len(chosen) == 2:
        return [chosen[0], chosen[1], chosen[1]], f"{how}; val is test, as in the paper"
    return chosen, how
