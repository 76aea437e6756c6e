"""Exact at segmentation scale: float32 counters stop at 2**24, these do not, and nothing grows."""

import gc

import pytest
import torch
from torch import Tensor

from confide.metrics import ECE, NLL, Accuracy

TRIO = (Accuracy, ECE, NLL)  # what holds for all is in tests/conformance

CLASSES, SIDE = 4, 1000


def tile() -> tuple[Tensor, Tensor, float, float, float]:
    """A million pixels with a known gap in each of 11 bins, and what ECE, accuracy and NLL must be."""
    pixel = torch.arange(SIDE * SIDE)
    group, turn = pixel % 11, pixel // 11
    high = torch.log(3 * (group + 4.5) / (10.5 - group))  # confidence (group + 4.5) / 15 among 4 classes
    guess = turn % CLASSES
    hit = (turn * 7919) % 1000 < torch.tensor([100, 900, 430, 555, 0, 700, 1000, 660, 820, 950, 870])[group]
    z = torch.zeros(CLASSES, SIDE * SIDE).scatter_(0, guess[None], high[None])
    raised = high.double().exp()
    confidence = raised / (raised + 3)
    gaps = [float((hit[group == g].double() - confidence[group == g]).sum().abs()) for g in range(11)]
    nll = -torch.where(hit, confidence, (1 - confidence) / 3).log().mean()
    y = torch.where(hit, guess, (guess + 1) % CLASSES)
    shape = (1, CLASSES, SIDE, SIDE)
    return z.reshape(shape), y.reshape(1, SIDE, SIDE), sum(gaps) / len(pixel), int(hit.sum()) / len(pixel), nll.item()


def test_twenty_million_pixels_against_the_closed_form():
    z, y, ece, accuracy, nll = tile()
    metric = ECE()
    for step in range(20):
        metric.update(z.roll(step * 137, -1), y.roll(step * 137, -1))
    assert int(metric.stats.count.sum()) == 20 * SIDE * SIDE > 2**24
    assert ece > 0.05
    assert metric.compute() == pytest.approx(ece, abs=1e-6)
    assert Accuracy()(z, y) == accuracy
    assert NLL()(z, y) == pytest.approx(nll, abs=1e-6)


def live_tensors() -> int:
    gc.collect()
    return sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())


@pytest.mark.parametrize("kind", TRIO)
def test_memory_does_not_grow_with_the_data(kind):
    z, y = torch.randn(64, 10), torch.arange(64) % 10
    metric = kind()
    for _ in range(2):  # counts and weights of one batch share their memory
        metric.update(z, y)
    size = {name: tensor.untyped_storage().nbytes() for name, tensor in metric.stats.tensors().items()}
    count = live_tensors()
    for _ in range(200):
        metric.update(z, y)
    assert live_tensors() == count
    assert {name: t.untyped_storage().nbytes() for name, t in metric.stats.tensors().items()} == size
