"""Which axis holds the classes: told by the shape of the labels, by sums of one, or by you; never guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from confide.core.errors import InputError
from confide.data.files.array import Array, Values

SMALL_SUM = 1e-2  # by how much a row of probabilities may miss 1, and still tell the axis


@dataclass(frozen=True, eq=False)
class Layout:
    """Scores and labels whose axes agree; `axis` is None where there is one score of two classes for each label."""

    scores: Array
    labels: Array | None
    axis: int | None
    said: str

    @property
    def cut(self) -> int:
        """The axis of the scores along which slabs are read: the first that holds no classes."""
        return 1 if self.axis == 0 else 0

    @property
    def soft(self) -> bool:
        """Whether the labels are probabilities of the classes."""
        return self.labels is not None and self.axis is not None and self.labels.shape == self.scores.shape

    @property
    def label_cut(self) -> int:
        """The axis of the labels that goes with `cut`."""
        return self.cut if self.soft else 0

    @property
    def items(self) -> int:
        """How many predictions: rows, or pixels."""
        return prod(self.scores.shape) // (1 if self.axis is None else self.classes)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return 2 if self.axis is None else self.scores.shape[self.axis]


def arrange(scores: Array, labels: Array | None, dim: int | None = None) -> Layout:
    """Find the class axis, and bring the labels to the shape of the scores without it."""
    if 0 in scores.shape:
        raise InputError(
            f"{scores.name!r} in {str(scores.path)!r} has shape {scores.shape}: there is no row to look at"
        )
    if dim is not None and not -len(scores.shape) <= dim < len(scores.shape):
        raise InputError(f"dim={dim} is not an axis of {scores.name!r}, which has shape {scores.shape}")
    if labels is None:
        return _alone(scores, dim)
    for fitted in _views(labels):
        if axes := _axes(scores.shape, fitted.shape, dim):
            return _chosen(scores, fitted, axes)
        if fitted.shape == scores.shape:
            return _same_shape(scores, fitted, dim)
    where = "" if dim is None else f" with dim={dim}"
    raise InputError(
        f"labels {labels.name!r} of shape {labels.shape} in {str(labels.path)!r} fit no axis of {scores.name!r} "
        f"of shape {scores.shape}{where}: they must have that shape without the class axis"
        f"{_hint(scores.shape, labels.shape)}"
    )


def _views(labels: Array) -> list[Array]:
    """As they are; without an axis of length 1; and in the other order of axes, as nibabel gives a volume."""
    slim = tuple(size for i, size in enumerate(labels.shape) if size != 1 or i == 0)
    views = [labels]
    for shape in (slim, slim[1:]):
        if len(shape) < len(labels.shape) and shape and prod(shape) == prod(labels.shape):
            views.append(labels.reshaped(shape))
    return views + ([labels.reversed()] if len(labels.shape) > 2 else [])


def _axes(scores: tuple[int, ...], labels: tuple[int, ...], dim: int | None) -> list[int]:
    """Every axis without which the shape of the scores is that of the labels."""
    allowed = range(len(scores)) if dim is None else [dim % len(scores)]
    return [i for i in allowed if scores[:i] + scores[i + 1 :] == labels]


def _chosen(scores: Array, labels: Array, axes: list[int]) -> Layout:
    axis, why = _which(scores, axes)
    if scores.shape[axis] == 1:
        thin = scores.reshaped(scores.shape[:axis] + scores.shape[axis + 1 :])
        said = f"There is one score for each label, that of class 1 of two ({scores.shape})."
        return Layout(thin, labels, None, said)
    return Layout(scores, labels, axis, why)


def _which(scores: Array, axes: list[int]) -> tuple[int, str]:
    if len(axes) == 1:
        return axes[0], f"Classes are on axis {axes[0]} of {scores.shape}, by the shape of the labels."
    if len(scores.shape) == 2:
        return 1, f"Classes are on axis 1 of {scores.shape}, as is usual for a table."
    axis = _by_sums(scores, axes)
    if axis is None:
        raise InputError(
            f"{scores.name!r} of shape {scores.shape} in {str(scores.path)!r} may have its classes on any of the axes "
            f"{axes}, by the shape of the labels: say which with dim (--dim 1 is torch's habit, --dim -1 numpy's)"
        )
    return axis, f"Classes are on axis {axis} of {scores.shape}: along it scores sum to 1."


def _same_shape(scores: Array, labels: Array, dim: int | None) -> Layout:
    """Labels shaped like the scores: probabilities of the classes, or else one score a label."""
    if len(scores.shape) > 1:
        part = labels.read(0, 256).astype(np.float64)
        for axis in (1, len(scores.shape) - 1) if dim is None else (dim % len(scores.shape),):
            if _sum_to_one(part, axis):
                return Layout(scores, labels, axis, f"Labels are soft: along axis {axis} they sum to 1.")
    return Layout(scores, labels, None, "There is one score for each label, that of class 1 of two.")


def _alone(scores: Array, dim: int | None) -> Layout:
    """Without labels only sums, or the habit of tables, tell."""
    if dim is not None:
        return Layout(scores, None, dim % len(scores.shape), f"Classes are on axis {dim}, as you said.")
    if len(scores.shape) == 2:
        return Layout(scores, None, 1, f"Classes are on axis 1 of {scores.shape}, as is usual for a table.")
    axis = _by_sums(scores, range(len(scores.shape)))
    if axis is None:
        raise InputError(
            f"{scores.name!r} in {str(scores.path)!r} has shape {scores.shape} and no labels tell which axis holds the "
            "classes: say it with dim (--dim 1 is torch's habit, --dim -1 numpy's)"
        )
    return Layout(scores, None, axis, f"Classes are on axis {axis} of {scores.shape}: along it scores sum to 1.")


def _by_sums(scores: Array, axes: Sequence[int]) -> int | None:
    """The only axis along which a part of the scores sums to 1."""
    fits = []
    for axis in axes:
        part = scores.read(0, 4, 1 if axis == 0 else 0).astype(np.float64)
        fits += [axis] if _sum_to_one(part, axis) else []
    return fits[0] if len(fits) == 1 else None


def _sum_to_one(values: Values, axis: int) -> bool:
    return bool(values.size and (values >= 0).all() and (abs(values.sum(axis) - 1) <= SMALL_SUM).all())


def _hint(scores: tuple[int, ...], labels: tuple[int, ...]) -> str:
    if len(scores) == len(labels) + 1 and sorted(scores) != sorted(labels):
        rows = {scores[0], scores[-1]}
        if labels and labels[0] not in rows:
            return f"; there are {labels[0]:,} labels for {scores[0]:,} rows: are they of the same split?"
    return ""
