"""The demo: five losses train the same small network on the same few images, and differ in confidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor, nn

from confide.data.split import Split
from confide.losses import ACLS, CrossEntropy, LabelRelaxation, LabelSmoothing, MbLS
from confide.models.mlp import MLP
from confide.study.train import Criterion, OnStep, fit, predict, steps

# fused=False: the batches are tiny, and compiling would take longer than all of the training.
CONTENDERS: Mapping[str, Criterion] = {
    "Cross-entropy": CrossEntropy(fused=False),
    "Label smoothing": LabelSmoothing(smoothing=0.05, fused=False),
    "MbLS": MbLS(margin=6.0, strength=0.1, over="mean", fused=False),
    "ACLS": ACLS(margin=6.0, top=0.1, rest=0.01, fused=False),
    "Label relaxation": LabelRelaxation(alpha=0.1, fused=False),
}
SEEDS = (0, 1, 2)

OnProgress = Callable[[str, int, float], None]


@dataclass(frozen=True)
class Setting:
    """How every contender is trained. Long for so few images, so that cross-entropy becomes overconfident."""

    hidden: tuple[int, ...] = (128, 128)
    epochs: int = 40
    lr: float = 0.05
    momentum: float = 0.9
    batch_size: int = 128


SETTING = Setting()


@dataclass(frozen=True, eq=False)
class Run:
    """What one trained network says about the test images."""

    method: str
    seed: int
    logits: Tensor
    labels: Tensor


def run(
    split: Split,
    *,
    contenders: Mapping[str, Criterion] = CONTENDERS,
    seeds: Sequence[int] = SEEDS,
    setting: Setting = SETTING,
    on_progress: OnProgress | None = None,
) -> Iterator[Run]:
    """Train every contender with every seed and yield each result as soon as it is there.

    All contenders meet a seed before the next one begins, so that a run cut short still compares
    them fairly. `on_progress(method, seed, share)` runs after every step; share is that of the whole demo.
    """
    jobs = list(product(seeds, contenders))
    length = steps(len(split.train), setting.batch_size, setting.epochs)
    test = split.test.load()
    for number, (seed, method) in enumerate(jobs):

        def report(step: int, _loss: float, done: int = number, method: str = method, seed: int = seed) -> None:
            if on_progress is not None:
                on_progress(method, seed, (done + step / length) / len(jobs))

        with one_thread():
            model = train(split, contenders[method], seed, setting, report)
            logits = predict(model, test.inputs)
        yield Run(method, seed, logits, test.targets)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread, and put the number back afterwards.

    Sums then run in one order on any number of cores. It also is the safe choice for layers this small:
    two threads gain little on an idle machine, and on a busy one they spend their time waiting for each other.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(
    split: Split, criterion: Criterion, seed: int, setting: Setting = SETTING, on_step: OnStep | None = None
) -> nn.Module:
    """Train the demo's network once."""
    part = split.train.load()
    return fit(
        lambda: MLP(inputs=part.inputs[0].numel(), hidden=setting.hidden, classes=len(split.classes)),
        criterion,
        part,
        epochs=setting.epochs,
        lr=setting.lr,
        momentum=setting.momentum,
        batch_size=setting.batch_size,
        seed=seed,
        on_step=on_step,
    )
