"""The settings under which papers report segmentation, to compare with their tables. Not those that we recommend."""

from __future__ import annotations

from typing import Any

from confide.core.errors import KnobError
from confide.metrics.adaptive_ece import AdaptiveECE
from confide.metrics.classwise_ece import ClasswiseECE
from confide.metrics.ece import ECE
from confide.metrics.mean_iou import MeanIoU
from confide.metrics.mean_over import MeanOver
from confide.metrics.metric import Metric


def protocol(name: str, *, ignore_index: int | None = 255) -> dict[str, Metric[Any]]:
    """Metrics by name, as a paper's released code computes them.

    "mbls-voc": of each batch (the paper's have 8 images), over pixels that are not background, weighted by how many
        those are; mIoU over foreground classes, of the whole set. Depends on the batch size, and warns. ACLS does the
        same.
    "cals": of each batch, background included, every batch weighing the same. Depends on the batch size, and warns.
    "mbls-medical": of each volume (one update a volume, its slices along the first axis), over pixels whose label is
        not background, every volume weighing the same.
    """
    if name not in ("mbls-voc", "cals", "mbls-medical"):
        raise KnobError(f"protocol {name!r} is unknown; there are 'mbls-voc', 'cals' and 'mbls-medical'")
    region = "all" if name == "cals" else "foreground"
    parts: dict[str, Metric[Any]] = {
        "ece": ECE(region=region, ignore_index=ignore_index),
        "adaptive_ece": AdaptiveECE(ties="released", region=region, ignore_index=ignore_index),
        "classwise_ece": ClasswiseECE(region=region, ignore_index=ignore_index),
    }
    found = {key: _averaged(part, name) for key, part in parts.items()}
    return {**found, "mean_iou": MeanIoU(background=False, ignore_index=ignore_index)}


def _averaged(metric: Metric[Any], name: str) -> Metric[Any]:
    if name == "mbls-medical":
        return MeanOver(metric, over="update")
    return MeanOver(metric, over="batch", weighted=name == "mbls-voc")
