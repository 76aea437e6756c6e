"""ACLS Eq. 8 read backwards: the smoothing f and the indicator C of any loss follow from its label shift."""

from typing import NamedTuple

import torch
from torch import Tensor

from confide.core.simplex import predicted


class Smoothing(NamedTuple):
    """How much a loss softens the label of each class (`f`, positive means softer) and where it acts (`C`, 0 or 1)."""

    f: Tensor
    C: Tensor


def smoothing(shift: Tensor, z: Tensor) -> Smoothing:
    """Softer means lower for the predicted class and higher for the others, hence the two signs."""
    return Smoothing(torch.where(predicted(z), -shift, shift), (shift != 0).to(shift.dtype))
