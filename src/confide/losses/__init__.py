"""Train-time methods, in the order in which a reader would want them in a table."""

from confide.losses.acls import ACLS as ACLS
from confide.losses.acls import ACLSHeld as ACLSHeld
from confide.losses.acls import ACLSReleased as ACLSReleased
from confide.losses.cross_entropy import CrossEntropy as CrossEntropy
from confide.losses.label_relaxation import LabelRelaxation as LabelRelaxation
from confide.losses.label_smoothing import LabelSmoothing as LabelSmoothing
from confide.losses.loss import Loss as Loss
from confide.losses.mbls import MbLS as MbLS

ALL: tuple[type[Loss], ...] = (
    CrossEntropy,
    LabelSmoothing,
    MbLS,
    ACLS,
    ACLSHeld,
    ACLSReleased,
    LabelRelaxation,
)
