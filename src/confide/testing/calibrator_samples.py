"""Logits whose labels follow a known law, for the checks of calibrators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from confide.core.errors import CalibrationWarning
from confide.posthoc import Calibrator

MakeCalibrator = Callable[..., Calibrator]
CLASSES = 4


class Sample(NamedTuple):
    """Logits and labels."""

    z: Tensor
    y: Tensor


def sample(make: MakeCalibrator, rows: int = 512, scale: float = 3.0, seed: int = 0) -> Sample:
    """Labels drawn from softmax(z / scale): images for spatial calibrators, rows for the others."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(rows, CLASSES, generator=generator, dtype=torch.float64) * 2
    y = torch.multinomial(z.softmax(1), 1, generator=generator)[:, 0]
    return shaped(make, Sample(z * scale, y))


def shaped(make: MakeCalibrator, flat: Sample) -> Sample:
    """Rows as images of 8 x 8 pixels where a calibrator looks at neighbours."""
    if not make().card.spatial:
        return flat
    z = flat.z.reshape(-1, 8, 8, flat.z.shape[1]).movedim(-1, 1).contiguous()
    return Sample(z, flat.y.reshape(-1, 8, 8))


def nll(log_p: Tensor, y: Tensor) -> float:
    """Mean over all labels of normalised log-probabilities with the classes on axis 1."""
    return float(-log_p.log_softmax(1).gather(1, y.unsqueeze(1)).mean())


@contextmanager
def unwarned() -> Iterator[None]:
    """Where a calibrator may rightly warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        yield


class Noisy(nn.Module):
    """A model whose training mode shows: dropout, batch statistics, and a buffer that counts."""

    calls: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(dim)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        """The input itself in eval mode."""
        self.calls += 1
        shape = x.shape
        out: Tensor = self.drop(self.norm(x.reshape(len(x), shape[1], -1).float())).reshape(shape)
        return out
