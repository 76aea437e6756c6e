"""Metrics of other libraries, where they are installed, on probabilities (N, C) or (N, C, H, W) and labels."""

import importlib.util
from collections.abc import Callable

from torch import Tensor

Contender = Callable[[Tensor, Tensor], object]


def peers(case: str) -> dict[str, Contender]:
    """Those that compute what a case of `metrics.py` does."""
    found: dict[str, Contender] = {}
    for package, add in {"torchmetrics": _torchmetrics, "netcal": _netcal, "calibration": _verified}.items():
        if importlib.util.find_spec(package):
            found |= add(case)
    return found


def _torchmetrics(case: str) -> dict[str, Contender]:
    from torchmetrics.functional import classification as tm

    if case.startswith("ECE, 1e7 confidences"):
        return {"torchmetrics": lambda p, y: tm.binary_calibration_error(p, y.long(), n_bins=15)}
    if not case.startswith("ECE, ") or "pixels" in case:
        return {}
    return {"torchmetrics": lambda p, y: tm.multiclass_calibration_error(p, y, num_classes=p.shape[1], n_bins=15)}


def _netcal(case: str) -> dict[str, Contender]:
    from netcal.metrics import ECE

    if case.startswith("ECE, 1e7 confidences"):
        return {"netcal": lambda p, y: ECE(15).measure(p.numpy(), y.long().numpy())}
    if not case.startswith("ECE, ") or "pixels" in case:
        return {}
    return {"netcal": lambda p, y: ECE(15).measure(p.numpy(), y.numpy())}


def _verified(case: str) -> dict[str, Contender]:
    import calibration

    if case.startswith("classwise"):
        return {"uncertainty-calibration": lambda p, y: calibration.get_calibration_error(p.numpy(), y.numpy())}
    if not case.startswith("ECE, ") or "1e7" in case:
        return {}
    return {"uncertainty-calibration": lambda p, y: calibration.get_ece(p.numpy(), y.numpy())}
