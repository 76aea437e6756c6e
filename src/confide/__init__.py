"""confide: make a neural network's confidence trustworthy.

criterion = confide.MbLS(margin=6.0)  # in place of torch.nn.CrossEntropyLoss()
loss = criterion(logits, target)
confide.ECE(bins=15)(logits, target)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confide.losses.acls import ACLS as ACLS
    from confide.losses.acls import ACLSHeld as ACLSHeld
    from confide.losses.acls import ACLSReleased as ACLSReleased
    from confide.losses.cross_entropy import CrossEntropy as CrossEntropy
    from confide.losses.label_relaxation import LabelRelaxation as LabelRelaxation
    from confide.losses.label_smoothing import LabelSmoothing as LabelSmoothing
    from confide.losses.mbls import MbLS as MbLS
    from confide.metrics.accuracy import Accuracy as Accuracy
    from confide.metrics.ece import ECE as ECE
    from confide.metrics.nll import NLL as NLL

__version__ = "0.1.0"

# Loaded on first use, so that `confide --help` need not wait for torch.
_HOMES = {
    "ACLS": "losses.acls",
    "ACLSHeld": "losses.acls",
    "ACLSReleased": "losses.acls",
    "Accuracy": "metrics.accuracy",
    "CrossEntropy": "losses.cross_entropy",
    "ECE": "metrics.ece",
    "LabelRelaxation": "losses.label_relaxation",
    "LabelSmoothing": "losses.label_smoothing",
    "MbLS": "losses.mbls",
    "NLL": "metrics.nll",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'confide' has no attribute {name!r}; it offers {', '.join(_HOMES)}")
    value = globals()[name] = getattr(import_module(f"confide.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
