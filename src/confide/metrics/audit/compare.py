"""compare: what changed between two models on the same data, how sure that is, and what it cost in accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core.errors import InputError
from confide.core.sums import Mean
from confide.metrics.audit.audit import Audit
from confide.metrics.audit.result import plain
from confide.metrics.audit.sums import Whole
from confide.metrics.means import mean_of

Array = NDArray[np.float64]
DRAWS = 2000


@dataclass(frozen=True)
class Change:
    """One metric of both, their difference (b - a) with its 95 % interval, and what that means in words."""

    key: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    verdict: str  # "better", "worse" or "no detectable change"


@dataclass(frozen=True)
class Comparison:
    """What changed from a to b. `paired` tells whether both were resampled by the same units."""

    headline: str
    changes: tuple[Change, ...]
    paired: bool
    note: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        data: dict[str, Any] = plain(asdict(self))
        return data


def compare(a: Audit, b: Audit) -> Comparison:
    """From model (or calibrator, or none) a to b: ECE, NLL, Brier and accuracy.

    Where both audits were given the same `unit=` ids, the interval resamples units and is that of the paired
    difference. Without, the two count as independent, which makes the interval wider than it need be.
    """
    for name in ("classes", "region"):
        if getattr(a, name) != getattr(b, name):
            raise InputError(f"cannot compare: {name} is {getattr(a, name)!r} and {getattr(b, name)!r}")
    paired = len(a.clusters) > 1 and a.clusters.keys() == b.clusters.keys()
    if paired and a.sums.n() != b.sums.n():
        raise InputError(f"cannot compare: {a.sums.n():,} rows and {b.sums.n():,}, though the units are the same")
    changes = tuple(_change(key, a, b, paired) for key in ("ece", "nll", "brier", "accuracy"))
    note = "" if paired else "unpaired: pass the same unit= ids to both audits for a narrower interval"
    return Comparison(_headline(changes), changes, paired, note)


def _change(key: str, a: Audit, b: Audit, paired: bool) -> Change:
    first, second = _value(key, a.sums, a.bins), _value(key, b.sums, a.bins)
    rng = np.random.default_rng(0)
    if paired:
        picks = rng.multinomial(len(a.clusters), np.full(len(a.clusters), 1 / len(a.clusters)), DRAWS)
        draws = _by_clusters(key, b, picks) - _by_clusters(key, a, picks)
    else:
        draws = _by_rows(key, b, rng) - _by_rows(key, a, rng)
    low, high = np.quantile(draws - draws.mean(), (0.025, 0.975)) + (second - first)
    gain = 1 if key == "accuracy" else -1
    words = "no detectable change" if low <= 0 <= high else ("better" if gain * (second - first) > 0 else "worse")
    return Change(key, first, second, second - first, float(low), float(high), words)


def _headline(changes: tuple[Change, ...]) -> str:
    ece, accuracy = changes[0], changes[-1]
    words = {"better": "Better calibrated", "worse": "Worse calibrated"}.get(ece.verdict, "No detectable change")
    span = f"ECE {_points(ece)}; accuracy {_points(accuracy)}"
    cost = {"worse": ", which it cost", "better": ", gained as well"}.get(accuracy.verdict, ", no detectable change")
    return f"{words}: {span}{cost}."


def _points(change: Change) -> str:
    ends = f"95 % interval {100 * change.low:+.1f} to {100 * change.high:+.1f}"
    return f"{100 * change.difference:+.1f} points ({ends})"


def _value(key: str, sums: Whole, bins: int) -> float:
    return float(_ece(*_bins(sums, bins))) if key == "ece" else mean_of(_mean(key, sums))


def _mean(key: str, sums: Whole) -> Mean:
    found: Mean = getattr(sums, "hit" if key == "accuracy" else key)
    return found


def _bins(sums: Whole, bins: int) -> tuple[Array, Array]:
    """The weight, and the weighted gap, of every bin."""
    grid = sums.top.grid.fold(bins)
    return grid.mass.float().numpy(), (grid.confidence.float() - grid.hits.float()).numpy()


def _ece(mass: Array, gap: Array) -> Array:
    total = mass.sum(-1)
    return np.asarray(np.abs(gap).sum(-1) / np.where(total > 0, total, math.nan))


def _by_clusters(key: str, audit: Audit, picks: NDArray[np.int64]) -> Array:
    parts = [audit.clusters[slot] for slot in sorted(audit.clusters)]
    if key == "ece":
        mass, gap = (np.stack(x) for x in zip(*(_bins(part, audit.bins) for part in parts), strict=True))
        return _ece(picks @ mass, picks @ gap)
    sums = np.array([_mean(key, part).sums.float()[:2].tolist() for part in parts])
    return np.asarray((picks @ sums[:, 1]) / (picks @ sums[:, 0]))


def _by_rows(key: str, audit: Audit, rng: np.random.Generator) -> Array:
    """Values of other data sets of as many independent rows."""
    if key == "ece":
        return _ece_by_rows(audit, rng)
    w, _, w2, w2x, w2x2 = _mean(key, audit.sums).sums.float().tolist()
    mean = mean_of(_mean(key, audit.sums))
    variance = max(w2x2 - 2 * mean * w2x + mean * mean * w2, 0.0) / w**2
    draw: Callable[..., Array] = rng.normal
    return draw(mean, variance**0.5, DRAWS)


def _ece_by_rows(audit: Audit, rng: np.random.Generator) -> Array:
    mass, gap = _bins(audit.sums, audit.bins)
    hits = audit.sums.top.grid.fold(audit.bins).hits.float().numpy()
    scale = audit.sums.n() / mass.sum()
    n = rng.poisson(mass * scale, (DRAWS, len(mass)))
    share, confidence = hits / np.where(mass > 0, mass, 1.0), (gap + hits) / np.where(mass > 0, mass, 1.0)
    correct = rng.binomial(n, np.broadcast_to(np.clip(share, 0, 1), n.shape))
    return _ece(n.astype(float), n * confidence - correct)
