"""Pictures as text: arrays to PNG, and PNG into the page."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from colorsys import hsv_to_rgb
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]  # (H, W, 3)
Colour = tuple[int, int, int]
WIDEST = 320  # pixels along the longer side
RAMP: tuple[tuple[float, Colour], ...] = (
    (0.0, (8, 28, 48)),
    (0.5, (11, 96, 158)),
    (0.8, (98, 180, 234)),
    (1.0, (244, 247, 249)),
)
BACKGROUND: Colour = (38, 42, 46)
# Okabe and Ito's, which stay apart for colour-blind readers; for more classes hues that are far from their neighbours.
FIRST: tuple[Colour, ...] = (
    (86, 180, 233), (230, 159, 0), (0, 158, 115), (240, 228, 66), (0, 114, 178), (213, 94, 0), (204, 121, 167),
)  # fmt: skip


def ramp(values: NDArray[Any]) -> Pixels:
    """Fractions as colours, dark where they are low."""
    at = [place for place, _ in RAMP]
    channels = [np.interp(values, at, [colour[k] for _, colour in RAMP]) for k in range(3)]
    return np.stack(channels, -1).round().astype(np.uint8)


def ramp_css() -> str:
    """The same as a CSS gradient."""
    stops = ", ".join(f"rgb{colour} {100 * place:.0f}%" for place, colour in RAMP)
    return f"linear-gradient(90deg, {stops})"


def palette(classes: int) -> Pixels:
    """A colour a class, the first one dark."""
    more = [
        tuple(round(255 * c) for c in hsv_to_rgb(0.618034 * k % 1, 0.55 + 0.2 * (k % 2), 0.9))
        for k in range(max(classes - 1 - len(FIRST), 0))
    ]
    return np.array([BACKGROUND, *FIRST, *more][:classes], dtype=np.uint8)


def grey(values: NDArray[Any]) -> Pixels:
    """A picture of any range, or of colours, as pixels; the brightest and darkest hundredth are cut off."""
    x = values.astype(np.float64)
    if values.dtype != np.uint8:
        low, high = np.percentile(x, (1, 99)) if x.size else (0.0, 1.0)
        x = 255 * (x - low) / max(high - low, 1e-12)
    x = x if x.ndim == 3 else np.repeat(x[..., None], 3, -1)
    return x.clip(0, 255).round().astype(np.uint8)


def sized(x: NDArray[Any]) -> NDArray[Any]:
    """Every k-th pixel, so that neither side is longer than WIDEST; small pictures get larger pixels instead."""
    longer = max(x.shape[:2])
    k, more = -(-longer // WIDEST), max(1, WIDEST // longer)
    return x[::k, ::k].repeat(more, 0).repeat(more, 1)


def png(pixels: Pixels) -> bytes:
    """A PNG file of 8-bit colours."""
    height, width, _ = pixels.shape
    lines = np.concatenate((np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)), 1)  # no filter
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


def data_uri(pixels: Pixels) -> str:
    """A picture that needs no file."""
    return f"data:image/png;base64,{b64encode(png(pixels)).decode('ascii')}"
