"""Which setting of another library gives which metric, or why none does. The page docs/metrics.md is made from this.

Each entry: our metric, the peer, its setting, and either a function of (p, y, confidence, hit) in numpy that calls it,
to agree within 1e-6, or the reason why they differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Call = Callable[..., float]


class Entry(NamedTuple):
    ours: str
    peer: str
    setting: str
    call: Call | None = None
    why: str = ""
    near: float = 1e-6  # how closely they agree all the same, where there is a reason to differ and a call


def torchmetrics(name: str, **options: Any) -> Call:
    def call(p, y, confidence, hit):
        import torch
        from torchmetrics.functional import classification

        found = getattr(classification, f"multiclass_{name}")
        return float(found(torch.from_numpy(p), torch.from_numpy(y), num_classes=p.shape[1], **options))

    return call


def netcal(name: str, *args: Any, **options: Any) -> Call:
    def call(p, y, confidence, hit):
        from netcal import metrics

        return float(getattr(metrics, name)(*args, **options).measure(p, y))

    return call


def verified(name: str, **options: Any) -> Call:
    def call(p, y, confidence, hit):
        import calibration

        return float(getattr(calibration, name)(p, y, **options))

    return call


def sklearn(name: str, inputs: Callable[..., tuple[Any, Any]], **options: Any) -> Call:
    def call(p, y, confidence, hit):
        from sklearn import metrics

        return float(getattr(metrics, name)(*inputs(p, y, confidence, hit), **options))

    return call


def monai(name: str, guess: bool = False, **options: Any) -> Call:
    def call(p, y, confidence, hit):
        import torch
        from monai import metrics

        hot = torch.nn.functional.one_hot(torch.from_numpy(y), p.shape[1]).t()[None].float()
        given = torch.from_numpy(p)
        if guess:
            given = torch.nn.functional.one_hot(given.argmax(1), p.shape[1])
        metric = getattr(metrics, name)(**options)
        metric(y_pred=given.t()[None].float(), y=hot)
        return float(metric.aggregate().mean())

    return call


def relplot(p, y, confidence, hit) -> float:
    import relplot

    return float(relplot.smECE(confidence, hit))


MAP = [
    Entry(
        "ECE()",
        "torchmetrics",
        "multiclass_calibration_error(n_bins=15, norm='l1')",
        torchmetrics("calibration_error", n_bins=15, norm="l1"),
    ),
    Entry("ECE()", "netcal", "ECE(15)", netcal("ECE", 15)),
    Entry("ECE()", "uncertainty-calibration", "get_ece(num_bins=15)", verified("get_ece", num_bins=15)),
    Entry(
        "ECE()",
        "MAPIE",
        "expected_calibration_error(num_bins=16)",
        why="takes binary labels only, and `num_bins` counts edges: 16 of them make 15 bins",
    ),
    Entry(
        "ECE()",
        "MONAI",
        "none",
        why="CalibrationErrorMetric averages over images what ours pools; of one image it is classwise, see there",
    ),
    Entry(
        "ECE()",
        "papers' code (focal_calibration, MbLS, ACLS, CALS)",
        "ECELoss(15)",
        why="agrees to 1e-6 where no confidence lies on an edge (tests/golden); there the rounding of float32 edges decides",
    ),
    Entry(
        "RMSCE()",
        "torchmetrics",
        "multiclass_calibration_error(n_bins=15, norm='l2')",
        torchmetrics("calibration_error", n_bins=15, norm="l2"),
    ),
    Entry(
        "MCE()",
        "torchmetrics",
        "multiclass_calibration_error(n_bins=15, norm='max')",
        torchmetrics("calibration_error", n_bins=15, norm="max"),
    ),
    Entry("MCE()", "netcal", "MCE(15)", netcal("MCE", 15)),
    Entry("AdaptiveECE()", "netcal", "ECE(15, equal_intervals=False)", netcal("ECE", 15, equal_intervals=False)),
    Entry("AdaptiveECE()", "uncertainty-calibration", "get_ece_em(num_bins=15)", verified("get_ece_em", num_bins=15)),
    Entry(
        "AdaptiveECE(ties='released')",
        "papers' code (focal_calibration, MbLS, ACLS)",
        "AdaptiveECELoss(15)",
        why="agrees to 1e-6 (tests/golden); drops the smallest confidence, which AdaptiveECE() keeps",
    ),
    Entry(
        "ClasswiseECE()",
        "uncertainty-calibration",
        "get_ece(num_bins=15, mode='marginal')",
        verified("get_ece", num_bins=15, mode="marginal"),
    ),
    Entry(
        "ClasswiseECE()",
        "MONAI",
        "CalibrationErrorMetric(num_bins=15) of one image",
        monai("CalibrationErrorMetric", num_bins=15),
    ),
    Entry(
        "ClasswiseECE()",
        "MAPIE",
        "top_label_ece",
        why="another quantity: it bins the top confidence apart for each predicted class",
    ),
    Entry(
        "ClasswiseECE()",
        "papers' code (focal_calibration, MbLS, ACLS)",
        "ClasswiseECELoss(15)",
        why="agrees to 1e-6 where the last class occurs as a label and no probability is 0 (tests/golden); it counts `max(label) + 1` classes",
    ),
    Entry(
        "DebiasedECE()",
        "uncertainty-calibration",
        "get_calibration_error(p=2, debias=True, mode='top-label')",
        verified("get_calibration_error", p=2, debias=True, mode="top-label"),
    ),
    Entry(
        "ThresholdedACE()",
        "google/uncertainty-metrics",
        "gce(binning_scheme='adaptive', threshold=0.01)",
        why="cuts the sorted probabilities by another rule; on 400 rows up to 1.4e-3 apart, at threshold 0 up to 1.3e-2",
    ),
    Entry(
        "SmoothECE()",
        "relplot",
        "smECE",
        relplot,
        "its kernel ends at half the range, and its mirrors see what lies on them once; theirs also rounds to a mesh",
        1e-4,
    ),
    Entry("MMCE()", "netcal", "MMCE()", netcal("MMCE")),
    Entry("NLL()", "scikit-learn", "log_loss", sklearn("log_loss", lambda p, y, c, h: (y, p))),
    Entry(
        "Brier()",
        "scikit-learn",
        "brier_score_loss(scale_by_half=False)",
        sklearn("brier_score_loss", lambda p, y, c, h: (y, p), scale_by_half=False),
    ),
    Entry(
        "AUROC()",
        "scikit-learn",
        "roc_auc_score(correct, confidence)",
        sklearn("roc_auc_score", lambda p, y, c, h: (h, c)),
    ),
    Entry(
        "AUPR()",
        "scikit-learn",
        "average_precision_score(wrong, -confidence)",
        sklearn("average_precision_score", lambda p, y, c, h: (1 - h, -c)),
    ),
    Entry(
        "AURC(), EAURC(), FPR95(at='closest')",
        "papers' code (CRL)",
        "calc_aurc_eaurc, calc_fpr_aupr",
        why="agree to 1e-12 (tests/golden) where no two confidences are equal; there it goes by the order of the rows",
    ),
    Entry(
        "Accuracy()", "torchmetrics", "multiclass_accuracy(average='micro')", torchmetrics("accuracy", average="micro")
    ),
    Entry(
        "Accuracy(top=2)",
        "scikit-learn",
        "top_k_accuracy_score(k=2)",
        sklearn("top_k_accuracy_score", lambda p, y, c, h: (y, p), k=2),
    ),
    Entry(
        "BalancedAccuracy()",
        "scikit-learn",
        "balanced_accuracy_score",
        sklearn("balanced_accuracy_score", lambda p, y, c, h: (y, p.argmax(1))),
    ),
    Entry("MeanIoU()", "torchmetrics", "multiclass_jaccard_index()", torchmetrics("jaccard_index")),
    Entry(
        "MeanIoU()",
        "MONAI",
        "MeanIoU(include_background=True) of one image",
        monai("MeanIoU", guess=True, include_background=True),
    ),
    Entry("Dice()", "torchmetrics", "multiclass_f1_score(average='macro')", torchmetrics("f1_score", average="macro")),
    Entry(
        "Dice()",
        "MONAI",
        "DiceMetric(include_background=True) of one image",
        monai("DiceMetric", guess=True, include_background=True),
    ),
    Entry(
        "HD95()",
        "MONAI",
        "compute_hausdorff_distance(percentile=95)",
        why="the same function; an object on one side only counts as the image's diagonal, not as NaN or infinity",
    ),
    Entry(
        "protocol('mbls-voc')",
        "papers' code (MbLS, ACLS)",
        "segmentation evaluator, batches of 8",
        why="the same averages; ties='released' and foreground as there.",
    ),
]
