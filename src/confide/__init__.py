"""confide: make a neural network's confidence trustworthy.

criterion = confide.MbLS(margin=6.0)  # in place of torch.nn.CrossEntropyLoss()
loss = criterion(logits, target)
confide.ECE(bins=15)(logits, target)
"""

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
