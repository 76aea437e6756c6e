"""Fit time and NLL, on the rows of the fit and on others, of every calibrator beside what other libraries offer.

Contenders of a family run interleaved in one process, one thread; times are medians, ratios are to the first.

    python benchmarks/posthoc.py                              synthetic logits
    python benchmarks/posthoc.py --logits a.npz b.npz         saved ones: `logits` or probabilities `predictions`,
                                                              and `labels` or `ground_truth`; one half each way
    python benchmarks/posthoc.py --shapes 25000x1000          other synthetic shapes
    python benchmarks/posthoc.py --families temperature       some families
"""

import argparse
import contextlib
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from posthoc_peers import PEERS

from confide import posthoc

Array = NDArray[Any]
Fit = Callable[[Array, Array], Callable[[Array], Array]]
FAMILIES = {
    "temperature": ("Temperature",),
    "ensemble": ("EnsembleTemperature",),
    "vector": ("VectorScaling",),
    "matrix": ("MatrixScaling", "Dirichlet"),
    "platt": ("Platt",),
    "beta": ("Beta",),
    "isotonic": ("IsotonicOVR",),
    "venn-abers": ("VennAbers",),
    "binning": ("HistogramBinning", "BBQ"),
    "others": ("ParameterizedTemperature", "IsotonicMulti", "Spline"),
}


def ours(name: str) -> Fit:
    def fit(z: Array, y: Array) -> Callable[[Array], Array]:
        return getattr(posthoc, name)().fit(z, y).predict_proba  # type: ignore[no-any-return]

    return fit


def saved(path: Path) -> tuple[Array, Array]:
    with np.load(path, allow_pickle=False) as file:
        labels = file["labels"] if "labels" in file else file["ground_truth"]
        if "predictions" in file:
            return np.log(file["predictions"].clip(np.finfo(np.float32).tiny)), labels
        return file["logits" if "logits" in file else file.files[-1]], labels


def synthetic(rows: int, classes: int) -> tuple[Array, Array]:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2 * rows, classes, generator=generator) * 2
    y = torch.multinomial(z.softmax(1), 1, generator=generator)[:, 0]
    return (z * 2.5).numpy(), y.numpy()


def halves(z: Array, y: Array) -> tuple[Array, Array, Array, Array]:
    order = np.random.default_rng(0).permutation(len(z))
    a, b = order[: len(z) // 2], order[len(z) // 2 :]
    return z[a], y[a], z[b], y[b]


def nll(p: Array, y: Array) -> float:
    return float(-np.log(np.clip(p[np.arange(len(y)), y], 1e-300, None)).mean())


def measure(contenders: dict[str, Fit], z: Array, y: Array, new: Array, truth: Array, budget: float) -> None:
    """One warm-up, then rounds with all contenders until the budget is spent; slow ones are not repeated."""
    times: dict[str, list[float]] = {}
    scores: dict[str, tuple[float, ...]] = {}
    for name, fit in contenders.items():
        with contextlib.suppress(Exception):
            fit(z[:400], y[:400])  # imports and the like
        try:
            start = time.perf_counter()
            found = fit(z, y)
            times[name] = [time.perf_counter() - start]
            scores[name] = tuple(nll(np.asarray(found(a.astype(float))), b) for a, b in ((z, y), (new, truth)))
        except Exception as error:
            print(f"  {name:<34} {type(error).__name__}: {str(error)[:70]}", flush=True)
    quick = [name for name, (first,) in ((n, t) for n, t in times.items()) if first < budget / 4]
    for name in quick:
        times[name].clear()
    end, rounds = time.perf_counter() + budget, 0
    while quick and rounds < 15 and (time.perf_counter() < end or rounds < 3):
        for name in quick:
            start = time.perf_counter()
            contenders[name](z, y)
            times[name].append(time.perf_counter() - start)
        rounds += 1
    base = statistics.median(next(iter(times.values())))
    for name, seconds in times.items():
        middle, (own, other) = statistics.median(seconds), scores[name]
        print(f"  {name:<34}{1e3 * middle:10.1f} ms {middle / base:8.2f} x   NLL {own:.8f} {other:.6f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logits", type=Path, nargs="*", default=[])
    parser.add_argument("--shapes", nargs="*", default=None, help="such as 5000x10")
    parser.add_argument("--families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--budget", type=float, default=6.0, help="seconds for each family")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    shapes = args.shapes if args.shapes is not None else [] if args.logits else ["5000x10", "5000x100", "25000x1000"]
    sets = [(path.stem, saved(path)) for path in args.logits]
    sets += [(shape, synthetic(*map(int, shape.split("x")))) for shape in shapes]
    for title, data in sets:
        z, y, new, truth = halves(*data)
        print(f"\n{title}: fit {z.shape}, {z.dtype}; judged on {len(new)}; uncalibrated NLL", end=" ")
        raw = new.astype(float)
        print(f"{nll(np.exp(raw - np.logaddexp.reduce(raw, 1, keepdims=True)), truth):.6f}", flush=True)
        for family in args.families:
            print(f" {family}")
            rivals = {name: fit for name, fit, most in PEERS.get(family, ()) if z.shape[1] <= most}
            measure({n: ours(n) for n in FAMILIES[family]} | rivals, z, y, new, truth, args.budget)


if __name__ == "__main__":
    main()
