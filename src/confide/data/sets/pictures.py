"""Image files to tensors, with the papers' resizing and cropping; a mask goes through the same, without blending.

Each way of reading is a small object, so that worker processes can be handed it. Without a generator it is the way for
evaluation: nothing random, crops from the centre.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import numpy as np
import torch
from torch import Tensor

from confide.core.errors import InputError, MissingExtra
from confide.data.split import Row

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".webp")
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Source:
    """An image file, by itself or inside a zip archive."""

    name: str
    archive: Path | None = None

    def read(self) -> bytes:
        if self.archive is None:
            return Path(self.name).read_bytes()
        return _archive(self.archive, os.getpid()).read(self.name)

    def __str__(self) -> str:
        return self.name if self.archive is None else f"{self.archive}/{self.name}"


@dataclass(frozen=True)
class Classified:
    """Reads (source, label): resized to `resize`, then cropped to `crop`, at random or from the centre.

    `resize` is (height, width), or one number for the shorter side. With `inception`, training takes a random area of
    8 to 100% and any shape from 3:4 to 4:3 instead, as ImageNet is trained on.
    """

    resize: tuple[int, int] | int | None = None
    crop: int | None = None
    inception: bool = False
    mode: str = "RGB"

    def __call__(self, item: tuple[Source, int], generator: np.random.Generator | None) -> Row:
        source, label = item
        image = open_image(source).convert(self.mode)
        if self.inception and self.crop and generator is not None:
            return _tensor(image.resize((self.crop, self.crop), 2, box=_area(image.size, generator))), _label(label)
        if self.resize is not None:
            image = image.resize(_target(image.size, self.resize), 2)  # bilinear
        if self.crop is not None:
            image = _cut(image, self.crop, _place(image.size, self.crop, generator), 0)
        return _tensor(image), _label(label)


@dataclass(frozen=True)
class Masked:
    """Reads (image, mask): the longer side to `longest`, padded and cropped to `size`; `ignore` where padded.

    `size` alone resizes to (height, width), without keeping the shape.
    """

    size: tuple[int, int] | None = None
    longest: int | None = None
    ignore: int = 255
    mode: str = "RGB"
    scale: int = 1  # the number by which a mask is divided, where classes are drawn as 0 and 255

    def __call__(self, item: tuple[Source, Source], generator: np.random.Generator | None) -> Row:
        image, mask = open_image(item[0]).convert(self.mode), open_image(item[1])
        if image.size != mask.size:
            raise InputError(f"{str(item[0])!r} is {image.size} wide and high, its mask {str(item[1])!r} {mask.size}")
        if self.longest is not None:
            factor = self.longest / max(image.size)
            width, height = (max(1, round(side * factor)) for side in image.size)
            image, mask = image.resize((width, height), 2), mask.resize((width, height), 0)
            if self.size is not None:
                at = _place(image.size, self.size[0], generator)
                image, mask = _cut(image, self.size[0], at, 0), _cut(mask, self.size[0], at, self.ignore)
        elif self.size is not None:
            image, mask = image.resize(self.size[::-1], 2), mask.resize(self.size[::-1], 0)
        return _tensor(image), _mask_tensor(mask, item[1], self.scale)


@lru_cache(maxsize=2)
def _archive(path: Path, _process: int) -> ZipFile:
    """Kept open, since finding its members takes longer than reading one; for each process its own place in it."""
    return ZipFile(path)


def open_image(source: Source) -> Image:
    """An image whose bytes are read already, so that no file stays open."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ModuleNotFoundError as error:
        raise MissingExtra("pillow", "images") from error
    try:
        image = Image.open(io.BytesIO(source.read()))
        image.load()
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise InputError(f"{str(source)!r} cannot be read as an image: {error}") from error
    return image


def _label(label: int) -> Tensor:
    return torch.tensor(label)


def _tensor(image: Image) -> Tensor:
    pixels = np.array(image)
    return torch.from_numpy(pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1)))


def _mask_tensor(mask: Image, source: Source, scale: int) -> Tensor:
    """A palette image holds its class numbers; colours would have to be looked up, and are refused."""
    pixels = np.array(mask)
    if pixels.ndim != 2:
        raise InputError(
            f"the mask {str(source)!r} has colours ({mask.mode}), not class numbers: save it as grey or with a palette"
        )
    if pixels.max(initial=0) > 255 or pixels.min(initial=0) < 0:
        raise InputError(
            f"the mask {str(source)!r} has numbers from {pixels.min()} to {pixels.max()}; 0 to 255 are read"
        )
    return torch.from_numpy(pixels.astype(np.uint8) // scale)


def _target(size: tuple[int, int], resize: tuple[int, int] | int) -> tuple[int, int]:
    if isinstance(resize, tuple):
        return resize[1], resize[0]
    width, height = (max(1, round(side * resize / min(size))) for side in size)
    return width, height


def _place(size: tuple[int, int], crop: int, generator: np.random.Generator | None) -> tuple[int, int]:
    """The left upper corner of a crop; what is too small is padded, and then centred."""
    room = [side - crop for side in size]
    if generator is None:
        return room[0] // 2, room[1] // 2
    x, y = (int(generator.integers(0, free + 1)) if free > 0 else free // 2 for free in room)
    return x, y


def _cut(image: Image, size: int, at: tuple[int, int], fill: int) -> Image:
    """A square from any place, filled up where the image ends."""
    from PIL import Image

    bands = len(image.getbands())
    whole = Image.new(image.mode, (size, size), fill if bands == 1 else (fill,) * bands)
    whole.paste(image, (-at[0], -at[1]))
    return whole


def _area(size: tuple[int, int], generator: np.random.Generator) -> Box:
    """A random area; after ten that do not fit, the largest square in the centre."""
    width, height = size
    for _ in range(10):
        area = width * height * generator.uniform(0.08, 1)
        ratio = float(np.exp(generator.uniform(np.log(3 / 4), np.log(4 / 3))))
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            x, y = int(generator.integers(0, width - w + 1)), int(generator.integers(0, height - h + 1))
            return x, y, x + w, y + h
    side = min(size)
    x, y = (width - side) // 2, (height - side) // 2
    return x, y, x + side, y + side
