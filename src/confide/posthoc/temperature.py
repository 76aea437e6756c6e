"""Temperature scaling: one number divides all logits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from confide.core.bins import CELLS, cell
from confide.core.simplex import one_hot
from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values, setting
from confide.posthoc.newton import root
from confide.posthoc.scores import Scores

BINS = 15  # of the ECE
SAMPLE = 500  # rows on which the search begins
FLAT, STEEP = 1e-8, 1e8  # 1/T lies between
TENTHS = [sum([0.1] * k) for k in range(1, 101)]  # as the released loops add up 0.1
GRIDS = {
    "focal_calibration": TENTHS,
    "label_relaxation": [0.25, 0.5, 0.75, *(k / 10 for k in range(10, 21)), 2.5, 3.0],
}


@dataclass(eq=False, kw_only=True)
class Temperature(Calibrator):
    """softmax(z / T), with the T that makes the labels most likely."""

    objective: str = setting("nll", choices=("nll", "brier", "ece"), doc="what T minimises; ECE over 15 bins")
    search: str = setting("exact", choices=("exact", *GRIDS), doc="where T is sought; the others as papers do")
    card = Card(
        title="Temperature scaling",
        cite="Guo et al., ICML 2017",
        formula="z / T",
        when="always first: one number, no change of the predicted class, a few hundred rows are enough",
        differs=(
            "The paper minimises NLL; its released code stops LBFGS early (2.51 where 3.06 is the optimum on one of "
            "our sets). focal_calibration, MbLS, ACLS and CALS take the first of T = 0.1, 0.2, ..., 10 with the lowest "
            "ECE: Temperature(objective='ece', search='focal_calibration'). Here: the optimum to 1e-10."
        ),
        affine=True,
        keeps_argmax=True,
        pooled=True,
    )

    temperature_: float = field(init=False, repr=False)
    error_: float = field(init=False, repr=False)  # of the temperature: its standard error, where there is an optimum

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        if self.objective == "nll" and self.search == "exact":
            return fit_scale(z, y)
        return searched(z, y, self.objective, GRIDS.get(self.search))

    def map(self, z: Tensor, values: Values) -> Tensor:
        return z / values["temperature"].to(z.dtype)


def fit_scale(z: Tensor, y: Tensor) -> Learnt:
    """The T of the lowest NLL: convex in 1/T, so a bracketed Newton finds it, first on some rows, then on all."""
    scores = Scores(z, y)
    before = scores.at(1.0, z.dtype)
    if problem := _bound(scores, before.value):
        scale, note = problem
        return _learnt(scale, False, note, (before.value, scores.at(scale, torch.float64).value))
    scale = 1.0
    if len(z) >= 2 * SAMPLE:
        some = scores.some(y, SAMPLE)
        if not _bound(some, 0.0):
            scale, _ = root(lambda b: some.at(b, z.dtype)[1:], 1.0, FLAT, STEEP, 1e-4)
    scale, _ = root(lambda b: scores.at(b, z.dtype)[1:], scale, FLAT, STEEP, 1e-4)
    last = before

    def slope(b: float) -> tuple[float, float]:
        nonlocal last
        last = scores.at(b, torch.float64)
        return last[1:]

    # The error after a Newton step is of the order of its square: 1e-12 for a last one of 1e-6.
    found, converged = root(slope, scale, FLAT, STEEP, 1e-6)
    learnt = _learnt(found, converged, "", (before.value, min(before.value, last.value)))
    error = 1 / (found**2 * math.sqrt(len(z) * last.second))
    learnt.values["error"] = torch.tensor(error, dtype=torch.float64)
    return learnt


def _learnt(scale: float, converged: bool, note: str, nll: tuple[float, float]) -> Learnt:
    return Learnt({"temperature": torch.tensor(1 / scale, dtype=torch.float64)}, converged, note, nll)


def _bound(scores: Scores, before: float) -> tuple[float, str] | None:
    """Whether the optimum lies at infinity, and the scale to use instead."""
    flat = scores.flat()
    if flat.second == 0:
        return 1.0, "all logits of a row are equal; there is nothing to scale and T stays 1"
    if flat.first >= 0:
        scale = 1e-3 / math.sqrt(flat.second)
        return scale, f"these logits are no better than chance; T is held at its bound, {1 / scale:.4g}"
    if scores.right == 0:
        scale = _modest(scores, before)
        return scale, (
            f"every one of the {len(scores.z):,} labels is predicted, so that no T is small enough; T is held at "
            f"{1 / scale:.4g}, which claims what so many rows can show. Use more rows, or harder ones"
        )
    return None


def _modest(scores: Scores, before: float) -> float:
    """The scale at which the NLL is that of one more row being wrong; the given one where that is bolder already."""
    limit = math.log1p(1 / (len(scores.z) + 1))
    if before <= limit:
        return 1.0
    low, high = 1.0, STEEP
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if scores.at(middle, torch.float64).value > limit else (low, middle)
    return high


def searched(z: Tensor, y: Tensor, objective: str, grid: list[float] | None) -> Learnt:
    """The first T of the lowest objective: on the papers' grid, or on a fine one and then between its points."""
    z = z.double()
    goal = _GOALS[objective]
    points = grid or [math.exp(k / 40) for k in range(-160, 161)]
    found = min(points, key=lambda t: goal(z / t, y))
    if grid is None and objective != "ece":  # ECE jumps, so that nothing is to be found between
        found = _golden(lambda u: goal(z / math.exp(u), y), math.log(found) - 1 / 40, math.log(found) + 1 / 40)
    return Learnt({"temperature": torch.tensor(found, dtype=torch.float64)})


def _golden(f: Callable[[float], float], low: float, high: float) -> float:
    """The exponential of where f is lowest between two ends, by golden section."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = f(a), f(b)
    while high - low > 1e-9:
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = f(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = f(b)
    return math.exp((low + high) / 2)


def _nll(z: Tensor, y: Tensor) -> float:
    return float((z.logsumexp(1) - z.gather(1, y[:, None])[:, 0]).mean())


def _brier(z: Tensor, y: Tensor) -> float:
    return float((z.softmax(1) - one_hot(z, y)).square().sum(1).mean())


def _ece(z: Tensor, y: Tensor) -> float:
    """Top-label ECE over 15 bins of equal width."""
    confidence, guess = z.softmax(1).max(1)
    bins = torch.div(cell(confidence), CELLS // BINS, rounding_mode="floor")
    gaps = torch.zeros(BINS, dtype=z.dtype, device=z.device).index_add_(0, bins, confidence - (guess == y).double())
    return float(gaps.abs().sum()) / len(z)


_GOALS = {"nll": _nll, "brier": _brier, "ece": _ece}
