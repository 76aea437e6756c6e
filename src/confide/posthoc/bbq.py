"""Bayesian binning into quantiles: histograms of many sizes, averaged by how likely each makes the labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values
from confide.posthoc.one_vs_rest import Array, Curve, follow, labels, missing, pack

PRIOR = 2.0  # rows that the prior is worth
LEAST = 1e-3  # models that weigh less than this part of the best are left out


@dataclass(eq=False, kw_only=True)
class BBQ(Calibrator):
    """In each class, an average over histograms of equal mass, normalised."""

    card = Card(
        title="Bayesian binning into quantiles (BBQ)",
        cite="Naeini, Cooper and Hauskrecht, AAAI 2015",
        formula="sum_B P(B | data) share of hits in the bin of p_k, normalised",
        when="binning without a choice of the number of bins",
        differs=(
            "Weights are the paper's marginal likelihoods with a Beta prior worth two rows, around the middle of each "
            "bin, and n rows claim no less than 1 / (n + 2); netcal scores by BIC or AIC, keeps an 'elbow' of the "
            "models and normalises raw scores."
        ),
        onnx=False,
    )

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        p, hit = z.double().softmax(1).cpu().numpy(), labels(z, y).cpu().numpy()
        return Learnt(pack([_average(p[:, k], hit[:, k]) for k in range(z.shape[1])]), note=missing(y, z.shape[1]))

    def map(self, z: Tensor, values: Values) -> Tensor:
        return follow(z.softmax(1), values, steps=True).log()


def _average(p: Array, hit: Array) -> Curve:
    """The mixture of all histograms, which is a step function, too: its left ends (the first is 0) and its values."""
    order = np.argsort(p, kind="stable")
    p, total = p[order], np.r_[0.0, np.cumsum(hit[order])]
    root = len(p) ** (1 / 3)
    sizes = range(max(1, math.floor(root / 10)), min(math.ceil(len(p) / 5), math.ceil(10 * root)) + 1)
    models = [_histogram(p, total, size) for size in sizes]
    score = np.array([score for _, _, score in models])
    weight = np.exp(score - score.max())
    chosen = [(w, *model[:2]) for w, model in zip(weight, models, strict=True) if w >= LEAST]
    edges = np.unique(np.concatenate([edge for _, edge, _ in chosen]))
    inside = np.r_[edges, np.inf]
    mixed = sum(w * value[np.searchsorted(edge, inside)] for w, edge, value in chosen) / sum(w for w, _, _ in chosen)
    return np.r_[0.0, edges], mixed


def _histogram(p: Array, total: Array, size: int) -> tuple[Array, Array, float]:
    """Inner edges, posterior means and log marginal likelihood of one histogram of equal mass."""
    at = np.arange(1, size) * len(p) // size
    edges = np.unique((p[at - 1] + p[at]) / 2)
    cut = np.r_[0, np.searchsorted(p, edges, side="right"), len(p)]
    count, hits = np.diff(cut).astype(float), np.diff(total[cut])
    ends = np.r_[0.0, edges, 1.0]
    middle = np.clip((ends[1:] + ends[:-1]) / 2, 1e-6, 1 - 1e-6)
    each = PRIOR / len(count)
    a, b = each * middle, each * (1 - middle)
    score = (
        _lgamma(each) - _lgamma(count + each) + _lgamma(hits + a) - _lgamma(a) + _lgamma(count - hits + b) - _lgamma(b)
    )
    least = 1 / (count + 2)
    return edges, np.clip((hits + a) / (count + each), least, 1 - least), float(score.sum())


def _lgamma(x: Array | float) -> Array:
    found: Array = torch.lgamma(torch.as_tensor(x, dtype=torch.float64)).numpy()
    return found
