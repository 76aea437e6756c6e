"""Train-time methods, in the order in which a reader would want them in a table."""

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
from confide.losses.loss import Loss as Loss
from confide.losses.mbls import MbLS as MbLS
from confide.losses.mbls_squared import MbLSSquared as MbLSSquared
from confide.losses.mdca import MDCA as MDCA
from confide.losses.mmce import MMCE as MMCE
from confide.losses.nacl import NACL as NACL
from confide.losses.soft_ece import SoftECE as SoftECE
from confide.losses.svls import SVLS as SVLS

ALL: tuple[type[Loss], ...] = (
    CrossEntropy,
    LabelSmoothing,
    Focal,
    FocalSD,
    DualFocal,
    ConfidencePenalty,
    CPC,
    MbLS,
    MbLSSquared,
    ACLS,
    ACLSHeld,
    ACLSReleased,
    LabelRelaxation,
    Brier,
    MDCA,
    DCA,
    MMCE,
    SoftECE,
    CRL,
    SVLS,
    NACL,
)
