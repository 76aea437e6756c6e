"""Batches from memory beside torch's DataLoader over the same tensors, interleaved; prints the median ratio.

Usage: python benchmarks/loading.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from time import perf_counter

import torch
from torch.utils.data import DataLoader, TensorDataset

from confide.data.augment import Crop, Flip, Normalise
from confide.data.batches import batches
from confide.data.split import Part

ROUNDS, SIZE = 7, 128
SHAPES = {
    "Fashion (floats)": ((6_000, 1, 28, 28), torch.float32),
    "CIFAR-10 (bytes)": ((20_000, 3, 32, 32), torch.uint8),
    "CIFAR-10 (floats)": ((20_000, 3, 32, 32), torch.float32),
}


def seconds(make: Callable[[], Iterable[object]]) -> float:
    start = perf_counter()
    for _ in make():
        pass
    return perf_counter() - start


def compare(name: str, part: Part) -> None:
    data = TensorDataset(part.inputs, part.targets)
    steps = (Crop(4), Flip(), Normalise((0.5,), (0.25,)))
    contenders: dict[str, Callable[[], Iterable[object]]] = {
        "ours": lambda: batches(part, SIZE, seed=0),
        "ours, with crop, flip and normalise": lambda: batches(part, SIZE, seed=0, steps=steps),
        "DataLoader": lambda: DataLoader(data, SIZE, shuffle=True),
        "DataLoader, 2 workers": lambda: DataLoader(data, SIZE, shuffle=True, num_workers=2),
    }
    times: dict[str, list[float]] = {key: [] for key in contenders}
    for _ in range(ROUNDS):
        for key, make in contenders.items():
            times[key].append(seconds(make))
    for key, values in times.items():
        ratio = median(other / own for other, own in zip(times["DataLoader"], values, strict=True))
        print(
            f"{name:18}  {key:36}  {len(part) / median(values):12,.0f} images a second  {ratio:6.1f} times DataLoader"
        )


def main() -> None:
    torch.set_num_threads(1)
    for name, (shape, dtype) in SHAPES.items():
        images = torch.randint(0, 256, shape, dtype=torch.uint8).to(dtype)
        compare(name, Part(images, torch.randint(0, 10, shape[:1])))


if __name__ == "__main__":
    main()
