"""Which files belong together: scores with labels in another file, and a folder with one file a case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from confide.core.errors import InputError
from confide.data.files.formats import READERS, arrays_of, ending, stem
from confide.data.naming import LABELS, SCORES, word

TABLES = (".csv", ".csv.gz", ".tsv", ".jsonl", ".jsonl.gz", ".parquet")
VOLUMES = (".nii", ".nii.gz")


@dataclass(frozen=True)
class Pair:
    """A case: its name, the file of its scores, and the file of its labels where that is another."""

    name: str
    scores: Path
    labels: Path | None


def pairs(path: Path, labels_from: Path | None) -> tuple[list[Pair], str]:
    """The cases behind a path, and the words for how they were found."""
    if not path.is_dir():
        beside = labels_from or _beside(path)
        if beside is not None and beside.is_dir():
            raise InputError(f"labels are to come from the folder {str(beside)!r}, but {str(path)!r} is a file")
        said = f"Labels are read from {beside.name!r}." if beside is not None else ""
        return [Pair(stem(path), path, beside)], said
    if labels_from is not None:
        return _matched(path, labels_from)
    inner = {word(child.name, (*SCORES, *LABELS)): child for child in sorted(path.iterdir()) if child.is_dir()}
    scores, labels = (next((inner[w] for w in words if w in inner), None) for words in (SCORES, LABELS))
    if scores is not None and labels is not None:
        return _matched(scores, labels)
    return _inside(path)


def _beside(path: Path) -> Path | None:
    """`labels.npy` next to `logits.npy`, or `val_labels.npy` next to `val_logits.npy`."""
    end = ending(path)
    if end not in (".npy", *VOLUMES):
        return None
    names = [f"{_prefix(path)}{known}{end}" for known in LABELS]
    return next((found for name in names if (found := path.with_name(name)).is_file() and found != path), None)


def _prefix(path: Path) -> str:
    """What stands before the role in a file's name: `val_` of `val_logits.npy`."""
    name = stem(path)
    role = word(name, (*SCORES, *LABELS))
    return name[: len(name) - len(role)] if role else f"{name}_"


def _files(folder: Path) -> list[Path]:
    return [child for child in sorted(folder.iterdir()) if child.is_file() and ending(child)]


def _matched(scores: Path, labels: Path) -> tuple[list[Pair], str]:
    """Files of the same name in two folders."""
    if not labels.is_dir():
        raise InputError(
            f"{str(scores)!r} is a folder, so labels must come from a folder, too; {str(labels)!r} is none"
        )
    truth = {_case(file): file for file in _files(labels)}
    cases = _without_volumes([file for file in _files(scores) if ending(file) not in TABLES])
    missing = [file for file in cases if _case(file) not in truth]
    if missing or not cases:
        what = f"no labels for {missing[0].name!r}" if missing else f"{str(scores)!r} holds no file that can be read"
        raise InputError(
            f"{what}: {len(missing)} of {len(cases)} cases have no file of the same name in {str(labels)!r}, which has "
            f"{', '.join(sorted(truth)[:3]) or 'none'}"
        )
    said = f"{len(cases):,} cases: scores from {str(scores)!r}, labels of the same names from {str(labels)!r}."
    return [Pair(_case(file), file, truth[_case(file)]) for file in cases], said


def _without_volumes(files: list[Path]) -> list[Path]:
    """Beside its probabilities nnU-Net writes its own segmentation as NIfTI."""
    others = [file for file in files if ending(file) not in VOLUMES]
    return others or files


def _case(file: Path) -> str:
    return _prefix(file).rstrip("_-. ") or stem(file)


def _inside(folder: Path) -> tuple[list[Pair], str]:
    """Pairs such as `a_logits.npy` and `a_labels.npy`, or files that hold both."""
    files = _files(folder)
    plain = [file for file in files if ending(file) not in TABLES] or files
    if not plain:
        raise InputError(f"{str(folder)!r} holds no file that can be read: {', '.join(READERS)}")
    truth = {_case(file): file for file in plain if word(stem(file), LABELS)}
    cases = _without_volumes([file for file in plain if file not in truth.values()])
    if not cases:
        raise InputError(f"{str(folder)!r} holds labels only ({', '.join(file.name for file in plain[:3])})")
    if truth and any(_case(file) not in truth for file in cases):
        lost = next(file for file in cases if _case(file) not in truth)
        raise InputError(f"{str(folder)!r} has labels for some cases, but none for {lost.name!r}")
    own = len(plain) - len(cases) - len(truth)
    said = f"{len(cases):,} cases in {str(folder)!r}{', labels in a file beside each' if truth else ', one file each'}."
    said += f" {own:,} NIfTI files there were taken for the network's own segmentations, not for labels." if own else ""
    return [Pair(_case(file) if truth else stem(file), file, truth.get(_case(file))) for file in cases], said


def case_columns(folder: Path, names: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
    """Columns of a table in the folder that has a row for every case: the column, then the case."""
    wanted = set(names)
    for table in (file for file in _files(folder) if ending(file) in TABLES):
        columns = {
            name: [str(v) for v in a.all().tolist()] for name, a in arrays_of(table).items() if a.shape[1:] == ()
        }
        key = next((name for name, values in columns.items() if wanted <= set(values)), None)
        if key is not None:
            return {
                name: dict(zip(columns[key], values, strict=True)) for name, values in columns.items() if name != key
            }
    return {}
