"""What a fit leaves behind: attributes that end in `_`, and a hash of the data."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from confide.posthoc.layout import Batch

if TYPE_CHECKING:
    from confide.posthoc.calibrator import Calibrator


def forget(calibrator: Calibrator) -> None:
    """Remove all that an earlier fit has left."""
    for name in [name for name in vars(calibrator) if name.endswith("_") and not name.startswith("_")]:
        delattr(calibrator, name)


def expose(calibrator: Calibrator) -> None:
    """Set every learnt tensor as an attribute that ends in `_`: a number, a tensor, or a list of them, one a label."""
    for name in calibrator.parts_[0]:
        values = [part[name] for part in calibrator.parts_ if name in part]
        held = [float(value) if value.dim() == 0 else value for value in values]
        setattr(calibrator, f"{name}_", held[0] if len(calibrator.parts_) == 1 else held)


def digest(batch: Batch) -> str:
    """A hash of the content: the same for the same numbers, as tensors or arrays, in float32 or wider."""
    state = hashlib.sha256()
    for tensor in (batch.z.float(), batch.y):
        state.update(tensor.contiguous().cpu().numpy().data)
    return state.hexdigest()
