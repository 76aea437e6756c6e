"""Venn-Abers: two isotonic fits for each score, with the row itself labelled 0 and 1, merged into one probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values
from confide.posthoc.one_vs_rest import Array, Curve, follow, labels, missing, pack

ROOM = 1 << 22  # numbers in one step
MOST = 4000  # corners up to which the result is exact; their number squared is held


@dataclass(eq=False, kw_only=True)
class VennAbers(Calibrator):
    """p1 / (1 - p0 + p1) for each class, normalised."""

    card = Card(
        title="Venn-Abers",
        cite="Vovk, Petej and Fedorova, NeurIPS 2015",
        formula="p1 / (1 - p0 + p1), p_i: isotonic fit with the row itself labelled i; normalised",
        when="isotonic regression that knows how little it knows: never 0 or 1",
        differs=(
            "As published for two classes. For more the paper is silent: one versus rest, normalised; the venn-abers "
            "package couples one-versus-one pairs by default. Exact up to some 16,000 rows a class; with more, "
            "neighbouring scores share a block."
        ),
        onnx=False,
    )

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        p, hit = z.double().softmax(1).cpu().numpy(), labels(z, y).cpu().numpy()
        return Learnt(pack([_curve(p[:, k], hit[:, k]) for k in range(z.shape[1])]), note=missing(y, z.shape[1]))

    def map(self, z: Tensor, values: Values) -> Tensor:
        return follow(z.softmax(1), values, steps=True).log()


def _curve(score: Array, hit: Array) -> Curve:
    """The merged probability on and between the scores of the fit, as steps: left ends (the first is 0) and values."""
    at, group = np.unique(score, return_inverse=True)
    count, hits = np.bincount(group).astype(float), np.bincount(group, hit).astype(float)
    first, last = at, at
    while len(at) > MOST and _turns(count, hits) > MOST:  # neighbours share a block then
        pairs = np.arange(0, len(first), 2)
        count, hits = np.add.reduceat(count, pairs), np.add.reduceat(hits, pairs)
        first, last = first[pairs], last[np.minimum(pairs + 1, len(last) - 1)]
    w, s = np.r_[0.0, np.cumsum(count)], np.r_[0.0, np.cumsum(hits)]
    n = len(first)
    on, between = np.arange(n), np.arange(n + 1)
    # A new row on a score joins that group, from before it to behind it; between scores it is alone.
    left, right = np.r_[on, between], np.r_[on + 1, between]
    p1 = _inserted(w, s, left, right, 1.0)
    p0 = 1 - _inserted(w, w - s, left, right, 1.0, falling=True)
    merged = p1 / (1 - p0 + p1)
    value = np.empty(2 * n + 1)
    value[0::2], value[1::2] = merged[n:], merged[:n]
    # Steps are open on the left: just above a score begins the gap behind it, just below it the score itself.
    ends = np.empty(2 * n + 1)
    ends[0], ends[1::2], ends[2::2] = 0.0, np.nextafter(first, -np.inf), last
    return ends, value


def _inserted(w: Array, s: Array, left: Array, right: Array, label: float, falling: bool = False) -> Array:
    """max over a <= left, min over b >= right of the mean of a..b with one more row of this label; or min, max."""
    sign = -1.0 if falling else 1.0
    corner = _corners(sign * s, w)
    out = np.empty(len(left))
    size = max(1, ROOM // (len(corner) + 1))
    table = _table(w, s, corner, label, sign)
    for part in (slice(i, i + size) for i in range(0, len(left), size)):
        out[part] = _block(w, s, left[part], right[part], corner, table, label, sign)
    return out


def _block(
    w: Array, s: Array, left: Array, right: Array, corner: Array, table: Array, label: float, sign: float
) -> Array:
    def mean(a: Array, b: Array) -> Array:
        found: Array = sign * (s[b] - s[a] + label) / np.maximum(w[b] - w[a] + 1, 1)
        return found

    behind = np.searchsorted(corner, right)  # the first corner that b may take
    direct = mean(corner[None, :], right[:, None])
    low = np.minimum(direct, table[:, behind].T)
    low[corner[None, :] > left[:, None]] = -np.inf
    own = mean(left[:, None], corner[None, :])
    own[corner[None, :] < right[:, None]] = np.inf
    alone = np.minimum(own.min(1), mean(left, right))
    highest: Array = np.maximum(low.max(1), alone)
    return sign * highest


def _table(w: Array, s: Array, corner: Array, label: float, sign: float) -> Array:
    """For each a and each first corner: the smallest mean from a to that corner or a later one."""
    gap = w[corner][None, :] - w[corner][:, None] + 1
    mean = sign * (s[corner][None, :] - s[corner][:, None] + label) / np.maximum(gap, 1)
    mean[gap < 1] = np.inf
    lowest: Array = np.minimum.accumulate(mean[:, ::-1], axis=1)[:, ::-1]
    return np.concatenate((lowest, np.full((len(corner), 1), np.inf)), 1)


def _turns(count: Array, hits: Array) -> int:
    """How many corners the curves of hits and of misses have, whichever has more."""
    w = np.r_[0.0, np.cumsum(count)]
    return max(len(_corners(np.r_[0.0, np.cumsum(sign * hits)], w)) for sign in (1.0, -1.0))


def _corners(s: Array, w: Array) -> Array:
    """Where the cumulative curve turns upward, and its two ends: no other place can bound a block."""
    slope = np.diff(s) / np.diff(w)
    turns = np.flatnonzero(slope[1:] > slope[:-1]) + 1
    found: Array = np.unique(np.r_[0, turns, len(w) - 1])
    return found
