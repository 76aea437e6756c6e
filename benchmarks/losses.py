"""Forward + backward of every loss against torch's cross-entropy: time, peak memory and compile time.

Ratios only: contenders take turns in random order in one process, and each cell is the median of per-round ratios.

    python benchmarks/losses.py                     all shapes, all losses
    python benchmarks/losses.py --shapes 0 2        some shapes
    python benchmarks/losses.py --methods mbls      some losses
    python benchmarks/losses.py --peers             other libraries beside them, where they are installed
    python benchmarks/losses.py --device cuda       on the GPU
"""

import argparse
import functools
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler is only asked for memory

import torch
import torch.nn.functional as F
from peers import declare_schemas, peers
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from confide.losses import ALL, Loss

Criterion = Callable[[Tensor, Tensor], Tensor]
SHAPES = ((128, 10), (256, 1000), (4, 4, 224, 224), (8, 21, 256, 256), (2048, 32000))
ROUNDS = (400, 200, 60, 20, 20)
WARM_UP = 12  # the compiled path has settled by then
PAIRWISE = 1000  # CPC compares all pairs of classes; with more of them it takes minutes


def batch(shape: tuple[int, ...], device: str) -> tuple[Tensor, Tensor]:
    """Logits that are mostly right and confident, so that margins are active."""
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(0, shape[1], (shape[0], *shape[2:]), generator=generator)
    logits = torch.randn(shape, generator=generator) * 3
    right = torch.rand(target.shape, generator=generator) < 0.8
    logits.scatter_add_(1, target.unsqueeze(1), (right * 12.0).unsqueeze(1))
    return logits.to(device).requires_grad_(), target.to(device)


def step(criterion: Criterion, logits: Tensor, target: Tensor) -> float:
    """Seconds of one forward and backward pass."""
    logits.grad = None
    start = time.perf_counter()
    criterion(logits, target).backward()
    if logits.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def peak(criterion: Criterion, logits: Tensor, target: Tensor) -> float:
    """Peak of the memory that one step allocates, gradient included, in sizes of the logits."""
    logits.grad = None
    highest = (_peak_cuda if logits.is_cuda else _peak_cpu)(lambda: criterion(logits, target).backward())
    return highest / (logits.numel() * logits.element_size())


def _peak_cuda(run: Callable[[], object]) -> int:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    return torch.cuda.max_memory_allocated() - before


def _peak_cpu(run: Callable[[], object]) -> int:
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        run()
    held = highest = 0
    for event in recorded.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            highest = max(highest, held)
    return highest


def measure(
    criteria: dict[str, Criterion], shape: tuple[int, ...], rounds: int, device: str
) -> Iterator[tuple[str, float, float]]:
    """Name, time ratio to the first criterion, and peak memory."""
    logits, target = batch(shape, device)
    times: dict[str, list[float]] = {name: [] for name in criteria}
    order = random.Random(0)
    for _ in range(rounds):
        for name, criterion in order.sample(list(criteria.items()), len(criteria)):  # whoever comes next suffers
            times[name].append(step(criterion, logits, target))
    base = next(iter(times.values()))
    for name, criterion in criteria.items():
        ratio = statistics.median(own / other for own, other in zip(times[name], base, strict=True))
        yield name, ratio, peak(criterion, logits, target)


def warm_up(criterion: Criterion, shape: tuple[int, ...], device: str) -> float:
    """Seconds until the criterion has settled: compile time, mostly."""
    logits, target = batch(shape, device)
    start = time.perf_counter()
    for _ in range(WARM_UP if logits.numel() < 1 << 20 else 3):
        step(criterion, logits, target)
    return time.perf_counter() - start


def contenders(names: list[str], shape: tuple[int, ...], device: str) -> dict[str, Criterion]:
    """Every loss as a user gets it, beside torch's own."""
    criteria: dict[str, Criterion] = {"F.cross_entropy": F.cross_entropy}
    for kind in ALL:
        loss = kind.example().to(device)
        chosen = not names or kind.__name__.lower() in names
        if (
            chosen
            and not (loss.traits.spatial and len(shape) == 2)
            and (kind.__name__ != "CPC" or shape[1] <= PAIRWISE)
        ):
            criteria[kind.__name__] = told(loss)
    return criteria


def told(loss: Loss) -> Criterion:
    """A loss that must be told more than the target is told the same at every call."""
    if not loss.example_side((1,)):
        return loss
    side = functools.cache(loss.example_side)
    return lambda logits, target: loss(logits, target, **side(tuple(target.shape)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=int, nargs="*", default=list(range(len(SHAPES))))
    parser.add_argument("--methods", nargs="*", default=[])
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the number of rounds")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--peers", action="store_true")
    args = parser.parse_args()
    schemas = declare_schemas() if args.peers else None
    where = torch.cuda.get_device_name() if args.device == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {where}; time x F.cross_entropy | peak memory x logits")
    for i in args.shapes:
        print(f"\n{SHAPES[i]}", flush=True)
        criteria = contenders(args.methods, SHAPES[i], args.device) | (peers(len(SHAPES[i])) if schemas else {})
        compile_time = {name: warm_up(criterion, SHAPES[i], args.device) for name, criterion in criteria.items()}
        rounds = max(20, int(ROUNDS[i] * args.scale))
        for name, ratio, memory in measure(criteria, SHAPES[i], rounds, args.device):
            print(f"  {name:<18}{ratio:6.2f}  {memory:6.2f}   first calls {compile_time[name]:5.1f} s", flush=True)


if __name__ == "__main__":
    main()
