"""Accuracy: how often the top class is the label."""

from __future__ import annotations

from torch import Tensor

from confide.core.stats import Share
from confide.metrics.metric import Metric


class Accuracy(Metric[Share]):
    """Share of rows whose largest logit is the label's; of tied logits the lowest index is the prediction."""

    definition = "Share of items whose predicted class is the label: mean of [argmax_k z_k = y], ties to the lowest k."

    def observe(self, z: Tensor, y: Tensor) -> Share:
        return Share.of(z.max(-1).indices == y, keep=y >= 0)

    def value(self, stats: Share) -> float:
        count, hits = int(stats.count), int(stats.hits)
        return hits / count if count else float("nan")
