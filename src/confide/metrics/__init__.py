"""Numbers that say how far a network's confidence can be believed. Sums in, number out."""

from typing import Any

from confide.metrics.accuracy import Accuracy as Accuracy
from confide.metrics.adaptive_ece import AdaptiveECE as AdaptiveECE
from confide.metrics.aupr import AUPR as AUPR
from confide.metrics.aurc import AURC as AURC
from confide.metrics.auroc import AUROC as AUROC
from confide.metrics.balanced_accuracy import BalancedAccuracy as BalancedAccuracy
from confide.metrics.brier import Brier as Brier
from confide.metrics.classwise_ece import ClasswiseECE as ClasswiseECE
from confide.metrics.debiased_ece import DebiasedECE as DebiasedECE
from confide.metrics.dice import Dice as Dice
from confide.metrics.eaurc import EAURC as EAURC
from confide.metrics.ece import ECE as ECE
from confide.metrics.fpr95 import FPR95 as FPR95
from confide.metrics.grouped import Grouped as Grouped
from confide.metrics.hd95 import HD95 as HD95
from confide.metrics.kernel_ce import KernelCE as KernelCE
from confide.metrics.ks_error import KSError as KSError
from confide.metrics.logit_stats import LogitStats as LogitStats
from confide.metrics.mce import MCE as MCE
from confide.metrics.mean_iou import MeanIoU as MeanIoU
from confide.metrics.mean_over import MeanOver as MeanOver
from confide.metrics.metric import Metric as Metric
from confide.metrics.mmce import MMCE as MMCE
from confide.metrics.nll import NLL as NLL
from confide.metrics.protocols import protocol as protocol
from confide.metrics.rmsce import RMSCE as RMSCE
from confide.metrics.signed_gap import SignedGap as SignedGap
from confide.metrics.smooth_ece import SmoothECE as SmoothECE
from confide.metrics.thresholded_ace import ThresholdedACE as ThresholdedACE

ALL: tuple[type[Metric[Any]], ...] = (
    Accuracy,
    BalancedAccuracy,
    NLL,
    Brier,
    ECE,
    RMSCE,
    MCE,
    SignedGap,
    AdaptiveECE,
    ClasswiseECE,
    ThresholdedACE,
    KSError,
    DebiasedECE,
    SmoothECE,
    MMCE,
    KernelCE,
    AURC,
    EAURC,
    FPR95,
    AUROC,
    AUPR,
    LogitStats,
    MeanIoU,
    Dice,
    HD95,
)
