"""Metrics against a plain torch `bincount` reference, exactness aside: the time ratio of each.

Ratios only: contenders run interleaved in one process, and each table cell is the median of per-round ratios. The
references do no check, no ignored label, no exact sum; float32 `bincount` of them saturates at segmentation size.

    python benchmarks/metrics.py            all cases
    python benchmarks/metrics.py --peers    other libraries beside them, where they are installed
    python benchmarks/metrics.py --state    constant state and the closed form at 1e9 pixels, by repeated sums
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from metric_peers import peers
from torch import Tensor

from confide.core.bins import Histogram
from confide.metrics import ECE, NLL, AdaptiveECE, Brier, ClasswiseECE

Contender = Callable[[Tensor, Tensor], object]
BINS = 15
ROUNDS = 15


def bins_of(p: Tensor) -> Tensor:
    return (p * BINS).ceil().long().sub_(1).clamp_(0, BINS - 1)


def plain_pixels(confidence: Tensor, hit: Tensor) -> float:
    index = bins_of(confidence)
    count = torch.bincount(index, minlength=BINS)
    sums = [torch.bincount(index, x, minlength=BINS) for x in (confidence, hit.to(confidence.dtype))]
    return float((sums[0] - sums[1]).abs().sum() / count.sum())


def plain_ece(p: Tensor, y: Tensor) -> float:
    confidence, guess = p.max(1)
    return plain_pixels(confidence.reshape(-1), (guess == y).reshape(-1))


def plain_classwise(p: Tensor, y: Tensor) -> float:
    classes = p.shape[1]
    index = (bins_of(p) + torch.arange(classes) * BINS).reshape(-1)
    hot = torch.zeros_like(p).scatter_(1, y[:, None], 1.0)
    sums = [torch.bincount(index, x.reshape(-1), minlength=classes * BINS) for x in (p, hot)]
    return float((sums[0] - sums[1]).abs().sum() / len(y) / classes)


def plain_adaptive(p: Tensor, y: Tensor) -> float:
    confidence, guess = p.max(1)
    order = confidence.argsort()
    gap = (confidence - (guess == y).float())[order].double().cumsum(0)
    edges = torch.linspace(0, len(gap), BINS + 1).long()
    return float(torch.diff(gap[(edges[1:] - 1).clamp(min=0)], prepend=gap.new_zeros(1)).abs().sum() / len(gap))


def plain_nll(p: Tensor, y: Tensor) -> float:
    return float(-p.gather(1, y[:, None]).log().mean())


def plain_brier(p: Tensor, y: Tensor) -> float:
    return float(((p * p).sum(1) - 2 * p.gather(1, y[:, None])[:, 0] + 1).mean())


def of_pixels(confidence: Tensor, hit: Tensor) -> float:
    return ECE().value(Histogram.of(confidence, hit, torch.ones_like(hit)))


def rows(items: int, classes: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    z = 3 * torch.randn((items, classes), generator=generator)
    y = torch.multinomial((z / 1.5).softmax(1), 1, generator=generator)[:, 0]
    return z.softmax(1), y


def pixels(count: int) -> tuple[Tensor, Tensor]:
    """Mostly sure, as in segmentation."""
    generator = torch.Generator().manual_seed(0)
    confidence = 1 - 0.5 * torch.rand(count, generator=generator) ** 8
    return confidence, torch.rand(count, generator=generator) < confidence


def pictures(count: int) -> tuple[Tensor, Tensor]:
    """The same as probabilities of two classes, (10, 2, H, W), with labels."""
    confidence, hit = pixels(count)
    side = (10, 1, 1000, count // 10_000)
    p = torch.cat((confidence.reshape(side), 1 - confidence.reshape(side)), 1)
    return p, (~hit).long().reshape(side)[:, 0]


def cases() -> dict[str, tuple[Callable[[], tuple[Tensor, Tensor]], dict[str, Contender]]]:
    logits = ECE()
    return {
        "ECE, 1e4 x 10": (lambda: rows(10_000, 10), {"plain": plain_ece, "confide": ECE(inputs="probs")}),
        "ECE, 1e5 x 100": (lambda: rows(100_000, 100), {"plain": plain_ece, "confide": ECE(inputs="probs")}),
        "ECE, 5e4 x 1000": (lambda: rows(50_000, 1000), {"plain": plain_ece, "confide": ECE(inputs="probs")}),
        "ECE from logits, 1e5 x 100": (
            lambda: (rows(100_000, 100)[0].log(), rows(100_000, 100)[1]),
            {"plain, softmax first": lambda z, y: plain_ece(z.softmax(1), y), "confide": logits},
        ),
        "ECE, 1e7 confidences": (lambda: pixels(10_000_000), {"plain": plain_pixels, "confide": of_pixels}),
        "ECE, 1e7 pixels of 2 classes": (
            lambda: pictures(10_000_000),
            {"plain": plain_ece, "confide": ECE(inputs="probs")},
        ),
        "classwise, 1e5 x 100": (
            lambda: rows(100_000, 100),
            {"plain": plain_classwise, "confide": ClasswiseECE(inputs="probs")},
        ),
        "adaptive, 1e5 x 100": (
            lambda: rows(100_000, 100),
            {"plain": plain_adaptive, "confide": AdaptiveECE(inputs="probs")},
        ),
        "NLL, 1e5 x 100": (lambda: rows(100_000, 100), {"plain": plain_nll, "confide": NLL(inputs="probs")}),
        "Brier, 1e5 x 100": (lambda: rows(100_000, 100), {"plain": plain_brier, "confide": Brier(inputs="probs")}),
    }


def measure(
    contenders: dict[str, Contender], data: tuple[Tensor, Tensor], rounds: int
) -> dict[str, tuple[float, float]]:
    """Median ratio to the first contender, and median milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds + 1):
        for name, run in contenders.items():
            start = time.perf_counter()
            run(*data)
            times[name].append(time.perf_counter() - start)
    settled = {name: own[1:] for name, own in times.items()}
    base = next(iter(settled.values()))
    return {
        name: (statistics.median(a / b for a, b in zip(own, base, strict=True)), 1e3 * statistics.median(own))
        for name, own in settled.items()
    }


def state() -> None:
    """A tile of 1e6 pixels with a known value, counted 1000 times."""
    confidence, hit = pixels(1_000_000)
    one = Histogram.of(confidence, hit, torch.ones_like(hit))
    many, total = one, 1
    while total < 1000:
        step = min(total, 1000 - total)
        many, total = many + (many if step == total else _times(one, step)), total + step
    exact = abs(ECE().value(many) - ECE().value(one))
    size = sum(tensor.numel() * 8 for tensor in many.tensors().values())
    print(f"1e9 pixels: {many.n():,} counted, value off by {exact:.1e}, state {size / 1e3:.0f} kB")


def _times(stats: Histogram, factor: int) -> Histogram:
    half = _times(stats, factor // 2) if factor > 1 else None
    doubled = stats.zero() if half is None else half + half
    return doubled + stats if factor % 2 else doubled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--state", action="store_true")
    args = parser.parse_args()
    if args.state:
        return state()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; time x plain torch")
    for name, (make, contenders) in cases().items():
        if args.only not in name:
            continue
        data = make()
        extra = peers(name) if args.peers else {}
        for who, (ratio, milliseconds) in measure(contenders | extra, data, args.rounds).items():
            print(f"  {name:<30}{who:<34}{ratio:7.2f}{milliseconds:10.1f} ms", flush=True)
    return None


if __name__ == "__main__":
    main()
