"""Which array is what: the names that are known, printed when they do not help."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from confide.core.errors import InputError
from confide.data.files.array import HOW, Array, Arrays, Values, stack

LOGITS = ("logits", "logit", "log_probs", "log_prob", "logprobs", "log_softmax", "log_probabilities")
PROBS = ("probabilities", "probability", "probs", "prob", "proba", "softmax", "sigmoid")
EITHER = ("predictions", "prediction", "preds", "pred", "outputs", "output", "scores", "score", "y_hat", "yhat")
LABELS = (
    *("labels", "label", "targets", "target", "y_true", "ground_truth", "groundtruth", "gt", "truth", "true"),
    *("y_test", "y", "segmentation", "seg", "mask", "masks", "annotations"),
)
SCORES = (*LOGITS, *PROBS, *EITHER)
HEADS = (*SCORES, "z", "p", "class")  # of columns, one a class
NAMES = (
    f"scores are looked for under {', '.join(SCORES)}, also with a prefix such as test_ or y_, or one column a class "
    f"such as logit_0, logit_1; labels under {', '.join(LABELS)}"
)


@dataclass(frozen=True, eq=False)
class Roles:
    """The arrays of one file by their part in it, and why each was taken for that."""

    scores: Array
    labels: Array | None
    columns: tuple[Array, ...]
    said: tuple[str, ...]
    class_names: tuple[str, ...] = ()


def word(name: str, words: Iterable[str]) -> str | None:
    """The known word that a name is or ends in: `test_logits` and `y_prob` count, `prologits` does not."""
    low = re.sub(r"[\s.\-/]+", "_", name.strip().lower())
    return next((known for known in words if low == known or low.endswith(f"_{known}")), None)


def roles(
    arrays: Arrays, path: Path, scores: str | None = None, labels: str | None = None, apart: Array | None = None
) -> Roles:
    """Find the scores, the labels (unless they come from a file apart) and the columns beside them."""
    truth, why_labels = find_labels(arrays, path, labels, scores) if apart is None else (apart, "")
    rest = {name: array for name, array in arrays.items() if array is not truth}
    found, why, class_names = _scores(rest, path, scores, truth)
    taken = set(found.name.split("+")) | {found.name}
    columns = tuple(a for a in rest.values() if a.name not in taken and _is_column(a, found))
    truth = truth and _numbered(truth, class_names)
    return Roles(found, truth, columns, (why, why_labels), class_names or _class_names(rest.values()))


def find_labels(
    arrays: Arrays, path: Path, name: str | None = None, scores: str | None = None
) -> tuple[Array | None, str]:
    """By name, of several the one that belongs to the scores; or because nothing else fits; and the words for it."""
    if name is not None:
        return _named(arrays, name, path), f"{name!r} holds the labels, as you said."
    fits = [a for a in arrays.values() if word(a.name, LABELS) and a.dtype != "object"]
    role = word(scores, SCORES) if scores else None
    prefix = scores[: len(scores) - len(role)].lower() if scores and role else ""
    for chosen in (
        [a for a in fits if prefix and a.name.lower().removeprefix(prefix) in LABELS],
        [a for known in LABELS for a in fits if a.name.lower() == known][:1],
        fits,
    ):
        if len(chosen) == 1:
            return chosen[
                0
            ], f"{chosen[0].name!r} ({chosen[0].dtype}, {_size(chosen[0])}) holds the labels, by its name."
    if fits:
        raise InputError(
            f"{str(path)!r} has several arrays that could be labels, {', '.join(map(str, fits))}: name the one that is "
            f"meant, such as --labels {fits[0].name}"
        )
    integers = [a for a in arrays.values() if a.whole and a.shape]
    floats = [a for a in arrays.values() if a.floating and len(a.shape) > 1]
    if len(integers) == 1 == len(floats) and len(integers[0].shape) < len(floats[0].shape) + 1:
        return _only_integers(integers[0], floats[0])
    return None, ""


def _only_integers(found: Array, scores: Array) -> tuple[Array | None, str]:
    """An unnamed array of integers is the labels where its shape fits."""
    if not any(found.shape == scores.shape[:i] + scores.shape[i + 1 :] for i in range(len(scores.shape))):
        return None, ""
    said = f"{found.name!r} ({found.dtype}, {_size(found)}) holds the labels: the only integers that fit the scores."
    return found, said


def _named(arrays: Arrays, name: str, path: Path) -> Array:
    if name not in arrays:
        raise InputError(f"{str(path)!r} has no array {name!r}; it holds {held(arrays)}")
    return arrays[name]


def _scores(arrays: Arrays, path: Path, name: str | None, truth: Array | None) -> tuple[Array, str, tuple[str, ...]]:
    """By its name; or one column a class; or one number a row; or else the only array that can be meant."""
    if name is not None:
        return _strict(_named(arrays, name, path), path, truth), f"{name!r} holds the scores, as you said.", ()
    wide = {name: array for name, array in arrays.items() if len(array.shape) > 1}
    if found := _known(wide, arrays, path, truth):
        return found, _by_name(found), ()
    for members, names in _families(arrays):
        said = f"Columns {members[0].name!r} to {members[-1].name!r} hold the scores, one column a class."
        return stack(members), said, names
    if found := _known(arrays, arrays, path, truth):
        return found, _by_name(found), ()
    return _unnamed(arrays, path), f"{_unnamed(arrays, path)} holds the scores: nothing else can.", ()


def _known(some: Arrays, arrays: Arrays, path: Path, truth: Array | None) -> Array | None:
    """A known name as it is comes before one with a prefix, logits before probabilities."""
    fits = [
        (a, known) for a in some.values() if (known := word(a.name, SCORES)) and (a.floating or known not in EITHER)
    ]
    exact = [(a, known) for a, known in fits if a.name.lower() == known]
    first = min((exact or fits), key=lambda fit: SCORES.index(fit[1]), default=None)
    if first is None:
        return None
    alike = [a for a, known in exact or fits if known == first[1]]
    if len(alike) > 1:
        raise _several(alike, arrays, path)
    return _strict(first[0], path, truth)


def _by_name(found: Array) -> str:
    return f"{found.name!r} ({found.dtype}, {_size(found)}) holds the scores, by its name."


def _unnamed(arrays: Arrays, path: Path) -> Array:
    fits = [a for a in arrays.values() if a.floating and len(a.shape) >= 2]
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise _several(fits, arrays, path)
    if any(a.dtype == "object" for a in arrays.values()):
        raise _objects(path)
    raise InputError(
        f"{str(path)!r} has no array of logits, floating point with a class axis; it holds "
        f"{held(arrays)}: {HOW} ({NAMES})"
    )


def _objects(path: Path) -> InputError:
    return InputError(f"{str(path)!r} holds Python objects, which are not opened because they could run code: {HOW}")


def _several(fits: Sequence[Array], arrays: Arrays, path: Path) -> InputError:
    return InputError(
        f"{str(path)!r} has several arrays that could be logits; it holds {held(arrays)}: name the one that is meant, "
        f"such as --scores {fits[0].name}"
    )


def _families(arrays: Arrays) -> Iterator[tuple[list[Array], tuple[str, ...]]]:
    """Columns that differ in what follows a known word (`prob_cat`, `prob_dog`), or that are named 0, 1, 2."""
    groups: dict[str, list[tuple[Array, str]]] = {}
    for array in arrays.values():
        if len(array.shape) == 1 and array.floating and (parts := _split(array.name)):
            groups.setdefault(parts[0], []).append((array, parts[1]))
    for head in sorted(groups, key=lambda head: HEADS.index(word(head, HEADS) or "class")):
        if len(groups[head]) > 1:
            yield _ordered(groups[head])


def _split(name: str) -> tuple[str, str] | None:
    """The longest known word at the head of a column's name, and what follows it."""
    if name.isdigit():
        return "", name
    for at in range(len(name) - 1, 0, -1):
        head = name[:at].rstrip(" _.-:[(")
        if (len(head) < at or name[at:].isdigit()) and word(head, HEADS):
            return head.lower(), name[at:].strip("])")
    return None


def _ordered(members: list[tuple[Array, str]]) -> tuple[list[Array], tuple[str, ...]]:
    """Numbered columns by number, named ones as they stand in the file."""
    if all(tail.isdigit() for _, tail in members):
        return [a for a, _ in sorted(members, key=lambda m: int(m[1]))], ()
    return [a for a, _ in members], tuple(tail for _, tail in members)


def _strict(array: Array, path: Path, truth: Array | None = None) -> Array:
    """One number a row is a score of two classes, if its name or its labels say so."""
    if array.dtype == "object":
        raise _objects(path)
    flat = len(array.shape) == 1 and (truth is None or truth.shape != array.shape or truth.text)
    if not array.floating or flat or not array.shape:
        raise InputError(
            f"{array.name!r} in {str(path)!r} is {array.dtype} {array.shape}: "
            "logits are floating point, with a class axis"
        )
    return array


def _is_column(array: Array, scores: Array) -> bool:
    """One value a row: usable as group, unit or id."""
    return len(array.shape) == 1 and array.shape[0] in scores.shape[:1] and array.dtype != "object"


def _class_names(arrays: Iterable[Array]) -> tuple[str, ...]:
    names = [a for a in arrays if a.text and len(a.shape) == 1 and word(a.name, ("classes", "class_names", "names"))]
    return tuple(map(str, names[0].all())) if len(names) == 1 else ()


def _numbered(labels: Array, names: Sequence[str]) -> Array:
    """Labels that are written as the names of the classes, as their numbers."""
    if not labels.text or not names:
        return labels
    number = {name: i for i, name in enumerate(names)}

    def count(values: Values) -> Values:
        unknown = next((v for v in values.tolist() if v not in number), None)
        if unknown is not None:
            raise InputError(
                f"{labels.name!r} in {str(labels.path)!r} says {unknown!r}, "
                f"but the columns of scores name {list(number)}"
            )
        return np.asarray([number[v] for v in values.tolist()], dtype=np.int64)

    return labels.mapped(count, "int64")


def held(arrays: Mapping[str, Array]) -> str:
    """What a file holds, for a message."""
    shown = [str(array) for array in arrays.values()]
    return ", ".join(shown[:12]) + (f" and {len(shown) - 12} more" if len(shown) > 12 else "") if shown else "nothing"


def _size(array: Array) -> str:
    return " x ".join(f"{size:,}" for size in array.shape) or "one number"
