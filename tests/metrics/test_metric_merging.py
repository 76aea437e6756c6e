"""Any batch size, order, layout, thread count or number of workers: the same bits."""

import pickle
from functools import reduce
from operator import add

import pytest
import torch
from torch import Tensor

from confide.metrics import ECE, NLL, Accuracy, layout
from confide.metrics.items import FEW, Items

TRIO = (Accuracy, ECE, NLL)  # what holds for all is in tests/conformance

SIZES = [1, 7, 64, 10_000]


def draw(items: int = 500, classes: int = 10, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(items + classes)
    z = 3 * torch.randn(items, classes, generator=generator)
    y = torch.randint(0, classes, (items,), generator=generator)
    y[::9] = -100
    return z.to(dtype), y


def stream(kind, z: Tensor, y: Tensor, size: int):
    metric = kind()
    for zs, ys in zip(z.split(size), y.split(size), strict=True):
        metric.update(zs, ys)
    return metric


@pytest.mark.parametrize("kind", TRIO)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("classes", [2, 19])
def test_any_partition_in_any_order(kind, dtype, classes):
    z, y = draw(150, classes, dtype)
    whole = kind()
    whole.update(z, y)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(1))
    for size in SIZES:
        assert stream(kind, z, y, size).stats == whole.stats
        assert stream(kind, z[order], y[order], size).stats == whole.stats
    assert stream(kind, z, y, 7).compute() == whole.compute() == kind()(z, y)


@pytest.mark.parametrize("kind", TRIO)
def test_any_tree_of_workers(kind):
    z, y = draw()
    workers = [stream(kind, zs, ys, 7) for zs, ys in zip(z.split(90), y.split(90), strict=True)]
    workers = pickle.loads(pickle.dumps(workers))
    whole = stream(kind, z, y, 500)
    assert reduce(add, workers).stats == whole.stats
    assert reduce(add, workers[::-1]).stats == whole.stats
    a, b, c = workers[0], workers[1], workers[2]
    assert ((a + b) + c).stats == (a + (b + c)).stats
    assert (a + b).stats == (b + a).stats
    assert (a + kind()).stats == (kind() + a).stats == a.stats
    assert (kind() + kind()).stats is None


@pytest.mark.parametrize("kind", TRIO)
def test_merge_is_in_place_and_plus_is_not(kind):
    z, y = draw()
    a, b = stream(kind, z[:200], y[:200], 50), stream(kind, z[200:], y[200:], 50)
    before = a.compute()
    both = a + b
    assert a.compute() == before
    assert a.merge(b) is a
    assert a.stats == both.stats
    a.reset()
    assert a.stats is None


@pytest.mark.parametrize("kind", TRIO)
def test_a_one_shot_call_leaves_the_sums_alone(kind):
    z, y = draw()
    metric = stream(kind, z[:100], y[:100], 100)
    before = metric.stats
    assert metric(z, y) == kind()(z, y)
    assert metric.stats is before


def test_only_equals_merge():
    with pytest.raises(TypeError, match="cannot merge ECE with NLL"):
        ECE().merge(NLL())
    with pytest.raises(TypeError, match="cannot merge Accuracy with ECE"):
        Accuracy() + ECE()
    with pytest.raises(TypeError):
        Accuracy() + 1
    with pytest.raises(ValueError, match="cannot merge: bins is 15 here and 10 there"):
        ECE().merge(ECE(bins=10))
    with pytest.raises(ValueError, match="ignore_index is -100 here and 255 there"):
        NLL() + NLL(ignore_index=255)


@pytest.mark.parametrize("kind", TRIO)
@pytest.mark.parametrize("classes", [4, 19])
def test_every_layout_gives_the_same_bits(kind, classes, monkeypatch):
    z, y = draw(2 * 5 * 6 * 7, classes)
    flat = stream(kind, z, y, 500).stats
    last, target = z.reshape(2, 5, 6, 7, classes), y.reshape(2, 5, 6, 7)
    first = last.movedim(-1, 1).contiguous()
    for room in (1 << 21, 400):  # whole batches, and pieces that cut through images
        monkeypatch.setitem(layout.ROOM, "cpu", room)
        for logits, dim in [(first, 1), (last, -1), (last.movedim(-1, 1), 1), (last.movedim(-1, 0), 0)]:
            metric = kind(dim=dim)
            metric.update(logits, target)
            assert metric.stats == flat


def test_a_single_item_needs_no_batch_axis():
    z, y = draw(1)
    y = torch.tensor([3])
    for kind in TRIO:
        assert kind()(z[0], y[0]) == pytest.approx(kind()(z, y), abs=0, nan_ok=True)  # one row has no ranks


@pytest.mark.parametrize("kind", TRIO)
def test_threads_change_nothing(kind):
    z, y = draw(20_000, 10)
    one = stream(kind, z, y, 20_000).stats
    torch.set_num_threads(3)
    assert stream(kind, z, y, 20_000).stats == one


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("classes", [2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 100, 1000])
def test_a_row_has_the_same_bits_alone_and_in_a_batch(classes, dtype):
    """What all of the above stands on; a property of this build of torch, hence checked."""
    z = 4 * torch.randn(515, classes, generator=torch.Generator().manual_seed(0)).to(dtype)
    y = torch.arange(515) % classes
    p, loss = read(z, y)
    for size in (1, 7, 64):
        parts = [read(*part) for part in zip(z.split(size), y.split(size), strict=True)]
        assert torch.equal(torch.cat([part[0] for part in parts]), p)
        assert torch.equal(torch.cat([part[1] for part in parts]), loss)
    assert torch.equal(read(z[3:], y[3:])[0], p[3:])
    assert torch.allclose(p, z.softmax(-1), rtol=1e-14 if dtype == torch.float64 else 1e-6, atol=0)


def read(z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities as (K, C), and NLL, as a metric reads them."""
    few = z.shape[1] <= FEW
    items = Items((z.t() if few else z).contiguous(), y, 0 if few else 1, probs=False)
    return items.p.t() if few else items.p, items.nll
