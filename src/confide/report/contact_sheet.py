"""A data set at a glance: a few inputs of every part, with their labels or their masks beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.data.augment import is_mask
from confide.data.split import Part, Rows, Split
from confide.report.figures import DPI, INK, LABEL, SMALL, check_path, figure_class, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS, CELL = 8, 1.3  # pictures in a row, inches
MASK_COLOURS = "tab20"


def contact_sheet(split: Split, path: Path) -> None:
    """Draw rows spread evenly over each part, so that sorted files show more than their first class."""
    check_path(path)
    parts = {"train": split.train, "val": split.val, "test": split.test}
    shown = {name: spread(part, COLUMNS) for name, part in parts.items() if len(part)}
    first = next(iter(shown.values()))
    if first.inputs.dim() != 4:
        raise InputError(f"a contact sheet needs images; these inputs have the shape {tuple(first.inputs.shape[1:])}")
    rows = 2 if is_mask(first.targets) else 1
    size = (COLUMNS * CELL + 0.6, (rows + 0.3) * CELL * len(shown) + 0.3)
    figure = figure_class()(figsize=size, dpi=DPI, facecolor="white")
    grid = figure.subplots(rows * len(shown), COLUMNS, squeeze=False)
    figure.subplots_adjust(left=0.5 / size[0], right=1 - 0.1 / size[0], top=0.95, bottom=0.02, wspace=0.06, hspace=0.28)
    for cell in grid.flat:
        cell.axis("off")
    for number, (name, part) in enumerate(shown.items()):
        top = grid[rows * number]
        top[0].text(-0.12, 0.5, name, rotation=90, va="center", ha="right", fontsize=LABEL, color=INK,
                    transform=top[0].transAxes)  # fmt: skip
        for column in range(len(part)):
            _picture(top[column], part.inputs[column])
            if rows == 2:
                _mask(grid[rows * number + 1, column], part.targets[column], split)
            else:
                _title(top[column], part.targets[column], split.classes)
    save(figure, path)


def spread(part: Rows, count: int) -> Part:
    """Up to `count` rows from all over a part, read into memory."""
    count = min(count, len(part))
    chosen = part.take([i * len(part) // count for i in range(count)])
    if isinstance(chosen, Part):
        return chosen
    rows = [chosen.read(item, None) for item in chosen.items]
    sizes = {tuple(inputs.shape) for inputs, _ in rows}
    return chosen.load() if len(sizes) == 1 else _cut(rows)


def _cut(rows: Sequence[tuple[Tensor, Tensor]]) -> Part:
    """Pictures of different sizes share their upper left corner, which is enough to see what they are."""
    height, width = (min(inputs.shape[axis] for inputs, _ in rows) for axis in (-2, -1))
    inputs = torch.stack([x[..., :height, :width] for x, _ in rows])
    targets = torch.stack([y[..., :height, :width] if y.dim() else y for _, y in rows])
    return Part(inputs, targets)


def _picture(axes: Axes, image: Tensor) -> None:
    """Of other numbers of channels than one and three, the first; floats from their least to their largest."""
    values = image.float()
    values = (values - values.min()) / (values.max() - values.min()).clamp(min=1e-9)
    if image.shape[0] == 3:
        shown = image if image.dtype == torch.uint8 else values
        axes.imshow(shown.permute(1, 2, 0).numpy(), interpolation="nearest")
    else:
        axes.imshow(values[0].numpy(), cmap="gray", interpolation="nearest")


def _mask(axes: Axes, mask: Tensor, split: Split) -> None:
    """Ignored pixels stay white."""
    values: Any = mask.numpy().astype(float)
    values[values == split.ignore_index] = float("nan")
    highest = max(len(split.classes) - 1, 1)
    axes.imshow(values, cmap=MASK_COLOURS, vmin=0, vmax=highest, interpolation="nearest")


def _title(axes: Axes, label: Tensor, classes: Sequence[str]) -> None:
    name = classes[int(label)] if label.dim() == 0 and not label.is_floating_point() else ""
    axes.set_title(name if len(name) < 13 else f"{name[:11]}…", fontsize=SMALL - 3, color=INK, pad=2)
