"""Several processes are one: the same bits, whatever their number, also where some saw nothing."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import distributed

from confide.metrics import ECE, Accuracy, AdaptiveECE, KernelCE
from confide.testing.metric_checks import pictures

WORKER = Path(__file__).with_name("worker.py")
SPEC = importlib.util.spec_from_file_location("metrics_worker", WORKER)
worker = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(worker)


@pytest.fixture(scope="module")
def alone():
    everything = torch.arange(worker.IMAGES), torch.ones(worker.IMAGES, dtype=torch.bool)
    return [worker.measured(make, *everything) for make in worker.MAKES], worker.audited(*everything).result()


def run(world, folder):
    """Start the processes, wait for them, and read what the last one has found."""
    calls = [[sys.executable, str(WORKER), str(rank), str(world)] for rank in range(world)]
    started = [subprocess.Popen([*call, str(folder / "store"), str(folder / "found.pt")]) for call in calls]
    assert [process.wait(timeout=300) for process in started] == [0] * world
    return torch.load(folder / "found.pt", weights_only=True)


def same(tensors, wanted):
    return tensors.keys() == wanted.keys() and all(torch.equal(tensors[name], wanted[name]) for name in wanted)


@pytest.mark.skipif(not distributed.is_available() or sys.platform == "win32", reason="needs gloo")
@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_any_number_of_processes_gives_the_same_bits(world, alone, tmp_path):
    metrics, audit = alone
    found = run(world, tmp_path)
    for number, metric in enumerate(metrics):
        tensors, value, estimate, calls = found[number]
        assert same(tensors, metric.stats.tensors()), metric
        assert value == metric.compute(), metric
        assert estimate == repr(metric.estimate()), metric
        assert len(calls) == (2 if metric.classwise and metric.classes is None else 1), metric
        if world > 2:  # a rank without data among them
            assert same(found[number, "uneven"], metric.stats.tensors()), metric
    assert found["audit"] == audit


def test_a_metric_of_ranks_forgets_its_rows_in_processes_as_in_one(monkeypatch):
    from confide.metrics import ranks

    monkeypatch.setattr(ranks, "KEEP", 2500)
    z, y = pictures(101)  # 3030 rows
    halves = [AdaptiveECE(), AdaptiveECE()]
    for half, part in zip(halves, (slice(0, 40), slice(40, 101)), strict=True):
        half.update(z[part], y[part])
        assert half.stats.kept.shape[1]
    whole = AdaptiveECE()
    whole.update(z, y)
    both = halves[0] + halves[1]
    assert both.stats == whole.stats
    assert not whole.stats.kept.numel()
    packed = sum(half.stats.pack(rank, 2) for rank, half in enumerate(halves))
    assert halves[0].stats.unpack(packed, 2) == whole.stats


def test_the_same_samples_on_both_sides_are_refused():
    z, y = pictures(6)
    a, b = Accuracy(), Accuracy()
    a.update(z, y, sample_id=torch.arange(6))
    b.update(z, y, sample_id=torch.arange(5, 11))
    with pytest.raises(ValueError, match=r"1 sample ids occur on both sides \(first 5\).*leave the padding .* valid="):
        a.merge(b)


def test_a_sample_of_rows_is_a_sample_of_them_all(monkeypatch):
    from confide.metrics import kernel_ce

    monkeypatch.setattr(kernel_ce, "KEEP", 100)
    z, y = pictures(20)
    whole, parts = KernelCE(), KernelCE()
    whole.update(z, y)
    for i in torch.randperm(20, generator=torch.Generator().manual_seed(0)):
        parts.update(z[i : i + 1], y[i : i + 1])
    assert len(whole.stats.rows) == 100
    assert parts.stats == whole.stats
    assert whole.estimate().note.startswith("of 100 of 600 rows")


def test_state_has_a_fixed_size():
    sizes = []
    for images in (1, 101):
        metric = ECE()
        z, y = pictures(images)
        metric.update(z, y, unit=torch.arange(images))
        sizes.append(sum(part.numel() for part in metric.stats.tensors().values()) * 8)
    assert sizes[0] == sizes[1] < 1e6
