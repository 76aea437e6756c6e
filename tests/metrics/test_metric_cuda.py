"""On a GPU: the CPU's numbers, from sums that merge to the same bits there as well. Needs one to run."""

import pytest
import torch

from confide import Audit
from confide.metrics import ALL
from confide.testing.metric_checks import pictures

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def measured(kind, z, y, size, device):
    metric = kind()
    for part in torch.arange(len(y)).split(size):
        metric.update(z[part].to(device), y[part].to(device), unit=part)
    return metric


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("classes", [4, 40])
def test_a_gpu_gives_the_cpus_number(kind, classes):
    if kind.__name__ == "HD95":
        pytest.importorskip("monai")
    z, y = pictures(20)
    z = z.double().repeat(1, classes // 4, 1, 1) + torch.linspace(0, 1, classes, dtype=torch.float64)[:, None, None]
    here, there = measured(kind, z, y, 20, "cpu"), measured(kind, z, y, 20, "cuda")
    assert there.compute() == pytest.approx(here.compute(), abs=1e-7, nan_ok=True)
    assert there.estimate().low == pytest.approx(here.estimate().low, abs=1e-4, nan_ok=True)
    assert measured(kind, z, y, 3, "cuda").stats == there.stats
    assert (there + here).stats.n() == 2 * here.stats.n()


def test_an_audit_on_a_gpu():
    z, y = pictures(20)
    z = z.double()
    here, there = Audit(4), Audit(4)
    here.update(z, y, unit=torch.arange(20), groups={"site": ["a", "b"] * 10})
    there.update(z.cuda(), y.cuda(), unit=torch.arange(20), groups={"site": ["a", "b"] * 10})
    for mine, theirs in zip(here.result()["metrics"], there.result()["metrics"], strict=True):
        assert mine["value"] == pytest.approx(theirs["value"], abs=1e-7), mine["key"]
