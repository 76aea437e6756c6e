"""Networks by name, from libraries that are here and those that are not, and Monte Carlo dropout."""

import importlib.util
import math
import sys
import types

import pytest
import torch
from torch import nn

from confide.core.errors import MissingExtra
from confide.models.mc_dropout import mc_dropout
from confide.models.named import build


@pytest.mark.parametrize(
    ("name", "image", "output"),
    [
        ("attention-unet", (1, 32, 32), (4, 32, 32)),
        ("unet-plus-plus", (1, 32, 32), (4, 32, 32)),
        ("unet-3d", (1, 32, 32, 32), (4, 32, 32, 32)),
    ],
)
def test_monai_networks_give_one_tensor(name, image, output):
    model = build(name).eval()
    assert model(torch.randn(1, *image)).shape == (1, *output)


def test_any_monai_network_by_its_name():
    model = build("monai:UNet", spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,))
    assert model(torch.randn(1, 1, 16, 16)).shape == (1, 2, 16, 16)
    with pytest.raises(ValueError, match=r"monai.networks.nets has no 'AttentionUNet'; it has AttentionUnet"):
        build("monai:AttentionUNet")


def test_your_own_function_by_its_module(monkeypatch):
    mine = types.ModuleType("mine")
    mine.net = lambda classes: nn.Linear(3, classes)
    mine.number = lambda: 3
    monkeypatch.setitem(sys.modules, "mine", mine)
    assert build("mine:net", classes=7).out_features == 7
    with pytest.raises(ValueError, match=r"'mine:number' gave a int, not a torch.nn.Module"):
        build("mine:number")


@pytest.mark.parametrize("library", ["timm", "torchvision", "smp"])
def test_a_library_that_is_not_here_is_named(library):
    module = {"smp": "segmentation_models_pytorch"}.get(library, library)
    if importlib.util.find_spec(module) is not None:
        pytest.skip(f"{module} is installed, so that nothing is missing")
    package = module.replace("_", "-")
    with pytest.raises(ValueError, match=f"there is no package '{module}' here; pip install {package}"):
        build(f"{library}:resnet18")


@pytest.mark.parametrize("name", ["timm:resnet18", "torchvision:resnet18", "smp:Unet"])
def test_a_library_that_is_here(name):
    module = {"smp": "segmentation_models_pytorch"}.get(name.partition(":")[0], name.partition(":")[0])
    pytest.importorskip(module, reason=f"{module} needs a torchvision, which does not import next to a CPU torch")
    assert isinstance(build(name), nn.Module)


def test_a_missing_monai_is_a_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "monai.networks", None)
    with pytest.raises(MissingExtra, match=r"pip install 'confide\[segmentation\]'"):
        build("unet-3d")


def test_an_import_that_fails_deeper_says_so_itself(monkeypatch, tmp_path):
    (tmp_path / "half_there.py").write_text("import surely_not_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="surely_not_installed"):
        build("half_there:net")
    (tmp_path / "broken_wheel.py").write_text("raise RuntimeError('operator nms does not exist')\n")
    with pytest.raises(ValueError, match="broken_wheel is installed but cannot be imported here: operator nms"):
        build("broken_wheel:net")


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(ValueError, match=r"no network 'resnet20'; did you mean resnet20-cifar\? there are mlp-1024"):
        build("resnet20")


def test_an_unknown_option_gets_the_nearest():
    with pytest.raises(
        ValueError, match=r"unet has no option 'clases'; did you mean classes\? it has channels, classes, w"
    ):
        build("unet", clases=3)


class Dropped(nn.Module):
    """One of two classes, by one number that dropout lets through or not."""

    def __init__(self, p=0.5):
        super().__init__()
        self.norm, self.dropout = nn.BatchNorm1d(1), nn.Dropout(p)

    def forward(self, x):
        return torch.cat((self.dropout(torch.ones_like(x)), torch.zeros_like(x)), 1) + 0 * self.norm(x)


def test_mc_dropout_averages_probabilities():
    """Half of the passes say softmax(2, 0), the others softmax(0, 0)."""
    model, x = Dropped(), torch.zeros(4000, 1)
    state = torch.get_rng_state()
    log_probs = mc_dropout(model, x, passes=4, seed=1)
    torch.testing.assert_close(log_probs.exp().sum(1), torch.ones(4000))
    expected = (torch.tensor(2.0).sigmoid() + 0.5) / 2
    assert log_probs.exp()[:, 0].mean() == pytest.approx(expected.item(), abs=0.01)
    assert len(log_probs[:, 0].round(decimals=4).unique()) == 5
    assert model.training
    assert model.norm.num_batches_tracked == 0
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(log_probs, mc_dropout(model, x, passes=4, seed=1))
    assert not torch.equal(log_probs, mc_dropout(model, x, passes=4, seed=2))


def test_one_pass_is_one_pass_and_extreme_logits_stay_finite():
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 3))
    nn.init.constant_(model[1].weight, 1e4)
    out = mc_dropout(model, torch.ones(5, 2), passes=3)
    assert torch.isfinite(out).all()
    assert out.logsumexp(1).abs().max() < 1e-5
    torch.manual_seed(0)
    expected = model.train()(torch.ones(5, 2)).log_softmax(1)
    torch.testing.assert_close(mc_dropout(model, torch.ones(5, 2), passes=1), expected.detach())
    assert math.isfinite(out.sum())


def test_mc_dropout_says_what_it_needs():
    with pytest.raises(ValueError, match="Linear has no dropout, so all passes would be the same"):
        mc_dropout(nn.Linear(2, 2), torch.zeros(1, 2))
    with pytest.raises(ValueError, match="at least one pass is needed, not 0"):
        mc_dropout(Dropped(), torch.zeros(1, 1), passes=0)
