"""How often the 95 % interval of an estimate holds the truth: calibrated and miscalibrated models, drawn at random.

    python benchmarks/coverage.py              500 models of each kind, three sizes
    python benchmarks/coverage.py --models 100 --sizes 200

The truth of a metric is its value on rows without noise: the same confidences, many of them, with the known chance of
being right in place of a label.
"""

import argparse
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from confide.core.sums import Mean
from confide.metrics import ECE, RMSCE, Accuracy, AdaptiveECE, DebiasedECE, KSError, SignedGap, SmoothECE
from confide.metrics.metric import Metric
from confide.metrics.ranks import Ranks

Array = NDArray[np.float64]
MANY = 200_000
METRICS: tuple[tuple[type[Metric], str], ...] = (  # type: ignore[type-arg]
    (ECE, "grid"),
    (AdaptiveECE, "top"),
    (RMSCE, "grid"),
    (DebiasedECE, "top"),
    (KSError, "top"),
    (SmoothECE, "grid"),
    (SignedGap, "gap"),
    (Accuracy, "hit"),
)


def model(rng: np.random.Generator, calibrated: bool) -> Callable[[int], tuple[Array, Array]]:
    """Confidences, and the chance that each is right: wrong by a shift, a temperature, a wave, or in one range."""
    a, b, floor = rng.uniform(0.5, 6), rng.uniform(0.3, 3), rng.uniform(0.1, 0.5)
    kind, size, place = rng.integers(4), rng.uniform(0.02, 0.12), rng.uniform(0.5, 0.9)
    sign, sharp = rng.choice([-1.0, 1.0]), rng.uniform(1.2, 2.5) ** rng.choice([-1, 1])

    def draw(n: int) -> tuple[Array, Array]:
        c = np.clip(floor + (1 - floor) * rng.beta(a, b, n), 0.02, 0.9999)
        odds = (c / (1 - c)) ** (1 / sharp)
        wrong = (c + sign * size, odds / (1 + odds), c + size * np.sin(10 * c), np.where(c > place, c - size, c))
        return c, c if calibrated else np.clip(wrong[kind], 0, 1)

    return draw


def sums(confidence: Array, hit: Array, what: str) -> object:
    """The sums that a metric needs; `hit` may be a chance."""
    c, h = torch.from_numpy(confidence), torch.from_numpy(hit)
    keep = torch.ones(len(c), dtype=torch.bool)
    if what in ("gap", "hit"):
        return Mean.of(c - h if what == "gap" else h, keep)
    ranks = Ranks.of(c, h.bool() if set(np.unique(hit)) <= {0.0, 1.0} else h, keep)
    return ranks.grid if what == "grid" else ranks


def covered(kind: int, calibrated: bool, n: int, seed: int) -> bool | None:
    """Whether the interval of one data set of one random model holds the truth; None without an interval."""
    rng = np.random.default_rng([seed, int(calibrated), n])
    draw, (metric, what) = model(rng, calibrated), METRICS[kind]
    confidence, chance = draw(n)
    span = metric().span(sums(confidence, (rng.random(n) < chance).astype(float), what), [])
    exact = calibrated and metric is not Accuracy
    truth = 0.0 if exact else metric().value(sums(*draw(MANY), what))
    if metric is DebiasedECE and not exact:  # of so many rows there is nothing to take off
        truth = ideal(draw)
    return None if np.isnan(span.low) else span.low - 1e-4 <= truth <= span.high + 1e-4


def ideal(draw: Callable[[int], tuple[Array, Array]]) -> float:
    """The root of the mean squared gap over bins of equally many rows, without noise."""
    confidence, chance = draw(MANY)
    parts = np.array_split(np.argsort(confidence), 15)
    return float(np.sqrt(np.mean([(confidence[part] - chance[part]).mean() ** 2 for part in parts])))


def coverage(kind: int, calibrated: bool, n: int, models: int) -> float:
    """The share of models whose interval holds the truth."""
    found = [covered(kind, calibrated, n, seed) for seed in range(models)]
    return float(np.mean([x for x in found if x is not None]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--metrics", nargs="*", default=[metric.__name__ for metric, _ in METRICS])
    parser.add_argument("--sizes", type=int, nargs="*", default=[200, 1000, 5000])
    args = parser.parse_args()
    print(f"share of {args.models} models of each kind whose 95 % interval holds the truth")
    for kind, (metric, _) in enumerate(METRICS):
        for n in args.sizes if metric.__name__ in args.metrics else []:
            both = [coverage(kind, calibrated, n, args.models) for calibrated in (True, False)]
            print(
                f"  {metric.__name__:<14} n = {n:<6} calibrated {both[0]:.3f}   miscalibrated {both[1]:.3f}", flush=True
            )


if __name__ == "__main__":
    main()
