"""What other libraries give on the same data, where they are installed; and the page that says so."""

import importlib.util
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from confide import metrics

HERE = Path(__file__).parent
SPEC = importlib.util.spec_from_file_location("peer_map", HERE / "peer_map.py")
peer_map = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(peer_map)
MODULES = {
    "torchmetrics": "torchmetrics",
    "netcal": "netcal",
    "uncertainty-calibration": "calibration",
    "MONAI": "monai",
    "relplot": "relplot",
    "scikit-learn": "sklearn",
}


@pytest.fixture(scope="module", autouse=True)
def torchvision_imports():
    """Next to a CPU build of torch, torchvision's operators do not load, and torchmetrics, which looks at it, fails."""
    library = torch.library.Library("torchvision", "DEF") if importlib.util.find_spec("torchvision") else None
    if library and not torch.cuda.is_available():
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library  # it lasts as long as somebody holds it


@pytest.fixture(scope="module")
def data():
    """Probabilities without ties, a little overconfident, so that every convention gives the same bins."""
    rng = np.random.default_rng(0)
    z = 2 * rng.standard_normal((1000, 5))
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    softer = p**0.7 / (p**0.7).sum(1, keepdims=True)
    y = np.array([rng.choice(5, p=row) for row in softer])
    return p, y, p.max(1), (p.argmax(1) == y).astype(float)


@pytest.mark.parametrize("entry", [e for e in peer_map.MAP if e.call], ids=lambda e: f"{e.ours} {e.peer}")
@pytest.mark.filterwarnings("ignore")
def test_the_setting_gives_the_same_number(entry, data):
    pytest.importorskip(MODULES[entry.peer])
    name, _, inside = entry.ours.partition("(")
    options = eval(f"dict({inside}")
    metric = getattr(metrics, name)(inputs="probs", **options)
    ours = metric(torch.from_numpy(data[0]), torch.from_numpy(data[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ours == pytest.approx(entry.call(*data), abs=entry.near)


def test_every_entry_agrees_or_says_why():
    assert all(entry.call or len(entry.why) > 20 for entry in peer_map.MAP)
    named = " ".join(entry.ours for entry in peer_map.MAP)
    without = {"SignedGap", "KSError", "KernelCE", "LogitStats"}  # nobody else has them in a package
    assert {kind.__name__ for kind in metrics.ALL if f"{kind.__name__}(" not in named} == without


def test_the_page_is_up_to_date():
    root = HERE.parents[1]
    subprocess.run([sys.executable, str(root / "scripts" / "make_metrics_page.py"), "--check"], check=True)
