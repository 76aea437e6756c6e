"""The table of metrics: which ones, and from which of an audit's sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from confide.core.stats import Stats
from confide.metrics.accuracy import Accuracy
from confide.metrics.adaptive_ece import AdaptiveECE
from confide.metrics.audit.sums import Whole
from confide.metrics.aupr import AUPR
from confide.metrics.aurc import AURC
from confide.metrics.auroc import AUROC
from confide.metrics.balanced_accuracy import BalancedAccuracy
from confide.metrics.brier import Brier, BrierSums
from confide.metrics.classwise_ece import ClasswiseECE
from confide.metrics.debiased_ece import DebiasedECE
from confide.metrics.dice import Dice
from confide.metrics.eaurc import EAURC
from confide.metrics.ece import ECE
from confide.metrics.fpr95 import FPR95
from confide.metrics.ks_error import KSError
from confide.metrics.mce import MCE
from confide.metrics.mean_iou import MeanIoU
from confide.metrics.metric import Metric
from confide.metrics.mmce import MMCE
from confide.metrics.nll import NLL
from confide.metrics.rmsce import RMSCE
from confide.metrics.signed_gap import SignedGap
from confide.metrics.smooth_ece import SmoothECE

if TYPE_CHECKING:
    from confide.metrics.audit.audit import Audit


class Row(NamedTuple):
    """One line: its key, kind, metric, and the sums that it needs."""

    key: str
    kind: str
    metric: Metric[Any]
    sums: Callable[[Whole], Stats]


def table(audit: Audit) -> list[Row]:
    """The lines in the order in which a reader wants them."""
    b, dense = audit.bins, audit.dense
    rows = [
        Row("signed_gap", "calibration", SignedGap(), lambda s: s.gap),
        Row("ece", "calibration", ECE(bins=b), lambda s: s.top.grid),
        Row("adaptive_ece", "calibration", AdaptiveECE(bins=b), lambda s: s.top),
        Row("classwise_ece", "calibration", ClasswiseECE(bins=b), lambda s: s.classes),
        Row("debiased_ece", "calibration", DebiasedECE(bins=b), lambda s: s.top),
        Row("rmsce", "calibration", RMSCE(bins=b), lambda s: s.top.grid),
        Row("mce", "calibration", MCE(bins=b), lambda s: s.top.grid),
        Row("smooth_ece", "calibration", SmoothECE(), lambda s: s.top.grid),
        Row("ks_error", "calibration", KSError(), lambda s: s.top),
        Row("mmce", "calibration", MMCE(), lambda s: s.top),
        Row("nll", "score", NLL(), lambda s: s.nll),
        Row("brier", "score", Brier(), lambda s: _brier(s)),
        Row("accuracy", "score", Accuracy(), lambda s: s.hit),
        Row("balanced_accuracy", "score", BalancedAccuracy(), lambda s: s.tally),
        Row("auroc", "ranking", AUROC(), lambda s: s.top),
        Row("aupr", "ranking", AUPR(), lambda s: s.top),
        Row("fpr95", "ranking", FPR95(), lambda s: s.top),
        Row("aurc", "ranking", AURC(), lambda s: s.top),
        Row("eaurc", "ranking", EAURC(), lambda s: s.top),
        Row("mean_iou", "overlap", MeanIoU(), lambda s: s.tally),
        Row("dice", "overlap", Dice(), lambda s: s.tally),
    ]
    return rows if dense else [row for row in rows if row.kind != "overlap"]


def metric_rows(audit: Audit) -> list[dict[str, Any]]:
    """Every metric with its interval, by clusters of units where there are any."""
    clusters = [audit.clusters[slot] for slot in sorted(audit.clusters)]
    return [_line(row, audit.sums, clusters) for row in table(audit)]


def _line(row: Row, sums: Whole, clusters: list[Whole]) -> dict[str, Any]:
    stats = row.sums(sums)
    parts = [row.sums(cluster) for cluster in clusters]
    if row.key == "classwise_ece" and parts and not parts[0].tensors()["count"].numel():
        parts = []  # with many classes clusters keep no bins of each
    found = row.metric.assess(stats, [row.metric.brief(part) for part in parts])
    line = {"key": row.key, "kind": row.kind, "goal": row.metric.goal}
    return line | {name: getattr(found, name) for name in found.__dataclass_fields__}


def _brier(sums: Whole) -> BrierSums:
    return BrierSums(sums.brier, Brier().blank(2).classes)
