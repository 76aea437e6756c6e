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
    from confide.losses.brier import Brier as Brier
    from confide.losses.confidence_penalty import ConfidencePenalty as ConfidencePenalty
    from confide.losses.cpc import CPC as CPC
    from confide.losses.crl import CRL as CRL
    from confide.losses.cross_entropy import CrossEntropy as CrossEntropy
    from confide.losses.dca import DCA as DCA
    from confide.losses.dual_focal import DualFocal as DualFocal
    from confide.losses.focal import Focal as Focal
    from confide.losses.focal import FocalSD as FocalSD
    from confide.losses.label_relaxation import LabelRelaxation as LabelRelaxation
    from confide.losses.label_smoothing import LabelSmoothing as LabelSmoothing
    from confide.losses.mbls import MbLS as MbLS
    from confide.losses.mbls_squared import MbLSSquared as MbLSSquared
    from confide.losses.mdca import MDCA as MDCA
    from confide.losses.mmce import MMCE as MMCE
    from confide.losses.nacl import NACL as NACL
    from confide.losses.soft_ece import SoftECE as SoftECE
    from confide.losses.svls import SVLS as SVLS
    from confide.metrics.accuracy import Accuracy as Accuracy
    from confide.metrics.adaptive_ece import AdaptiveECE as AdaptiveECE
    from confide.metrics.audit.audit import Audit as Audit
    from confide.metrics.audit.compare import compare as compare
    from confide.metrics.classwise_ece import ClasswiseECE as ClasswiseECE
    from confide.metrics.ece import ECE as ECE
    from confide.metrics.nll import NLL as NLL

__version__ = "0.1.0"

# Loaded on first use, so that `confide --help` need not wait for torch.
_HOMES = {
    "ACLS": "losses.acls",
    "ACLSHeld": "losses.acls",
    "ACLSReleased": "losses.acls",
    "Accuracy": "metrics.accuracy",
    "AdaptiveECE": "metrics.adaptive_ece",
    "Audit": "metrics.audit.audit",
    "Brier": "losses.brier",
    "CPC": "losses.cpc",
    "CRL": "losses.crl",
    "ClasswiseECE": "metrics.classwise_ece",
    "ConfidencePenalty": "losses.confidence_penalty",
    "CrossEntropy": "losses.cross_entropy",
    "DCA": "losses.dca",
    "DualFocal": "losses.dual_focal",
    "ECE": "metrics.ece",
    "Focal": "losses.focal",
    "FocalSD": "losses.focal",
    "LabelRelaxation": "losses.label_relaxation",
    "LabelSmoothing": "losses.label_smoothing",
    "MDCA": "losses.mdca",
    "MMCE": "losses.mmce",
    "MbLS": "losses.mbls",
    "MbLSSquared": "losses.mbls_squared",
    "NACL": "losses.nacl",
    "NLL": "metrics.nll",
    "SVLS": "losses.svls",
    "SoftECE": "losses.soft_ece",
    "compare": "metrics.audit.compare",
}
__all__ = sorted(_HOMES)


if not TYPE_CHECKING:  # a type checker would take any name for a public one

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'confide' has no attribute {name!r}; it offers {', '.join(_HOMES)}")
        value = globals()[name] = getattr(import_module(f"confide.{_HOMES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
