"""Each network is the one that its paper used: numbers of parameters from elsewhere, shapes, and no loose ends."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from confide.models import transunet
from confide.models.deeplab import DeepLabV3
from confide.models.imagenet import Encoder
from confide.models.keras import EPSILON, MOMENTUM
from confide.models.named import MODELS, build
from confide.models.resnet import BasicBlock, ThinResNet
from confide.models.text_cnn import TextCNN
from confide.models.unet import UNet

RESNET50, RESNET101 = 25_557_032, 44_549_160  # as torchvision documents them, for 1,000 classes
STEMS = 64 * 3 * (7 * 7 - 3 * 3)  # what a stem of 3 x 3 saves


def resnet(imagenet, features, classes):
    """From the documented number: another stem, another head."""
    return imagenet - STEMS - 2049 * 1000 + (features + 1) * classes


def unet():
    """3 x 3 convolutions with biases, counted from the description."""
    widths = (32, 64, 128, 256, 512)
    down = sum((a + 1 / 9) * b * 9 + (b + 1 / 9) * b * 9 for a, b in pairwise((1, *widths)))
    up = sum((a + b + 1 / 9) * a * 9 + (a + 1 / 9) * a * 9 for a, b in pairwise(widths))
    return round(down + up) + 33 * 4


# Name, parameters, shape of an input, of the output. Where a number was published, or how else it was counted:
CASES = [
    ("mlp-1024", 785 * 1024 + 1025 * 1024 + 1025 * 10, (1, 28, 28), (10,)),
    ("resnet20-cifar", 269_722, (3, 32, 32), (10,)),  # the 0.27 M of the paper; weights of others fit and score as said
    ("resnet50-cifar", resnet(RESNET50, 2048, 10), (3, 32, 32), (10,)),
    ("resnet101-cifar", resnet(RESNET101, 2048, 10), (3, 32, 32), (10,)),
    ("resnet50-tiny", resnet(RESNET50, 8192, 200), (3, 64, 64), (200,)),
    ("resnet101-tiny", resnet(RESNET101, 8192, 200), (3, 64, 64), (200,)),
    ("resnet50-imagenet", RESNET50, (3, 64, 64), (1000,)),
    ("resnet101-imagenet", RESNET101, (3, 64, 64), (1000,)),
    ("vgg16", 14_991_946, (3, 32, 32), (10,)),  # "trainable" in the summary of the Keras model that it comes from
    ("resnet56v2", 1_663_338, (3, 32, 32), (10,)),  # counted layer by layer in test_resnet56v2_layer_by_layer
    ("densenet-bc-100-12", 769_162, (3, 32, 32), (10,)),  # the 0.8 M of the paper; the number of its reimplementations
    ("unet", unet(), (1, 64, 64), (4, 64, 64)),
    ("deeplabv3-resnet50", 42_004_074 - 2_365_205, (3, 64, 64), (21, 64, 64)),  # torchvision's, without its second head
    ("transunet", None, (1, 192, 192), (4, 192, 192)),
]


@pytest.mark.parametrize(("name", "parameters", "image", "output"), CASES, ids=[case[0] for case in CASES])
def test_parameters_and_shapes(name, parameters, image, output):
    with torch.device("meta"):
        model = build(name)
        assert model(torch.empty(2, *image)).shape == (2, *output)
    if parameters is not None:
        assert sum(p.numel() for p in model.parameters()) == parameters


def test_all_names_are_tested():
    elsewhere = {"text-cnn", "attention-unet", "unet-plus-plus", "unet-3d"}
    assert {case[0] for case in CASES} | elsewhere == set(MODELS)


def test_transunet_has_the_parameters_of_the_released_code():
    """105.28 M in its tables: 105,276,066 for two classes at 224 x 224; each class more is one filter of the head."""
    for classes in (2, 9):
        with torch.device("meta"):
            model = build("transunet", classes=classes, size=224)
        assert sum(p.numel() for p in model.parameters()) == 105_276_066 + (classes - 2) * (16 * 9 + 1)


def test_resnet56v2_layer_by_layer():
    conv = 3 * 9 * 16 + 16
    norms = 16
    channels, width = 16, 16
    for stage, out in enumerate((64, 128, 256)):
        for block in range(6):
            conv += channels * width + width + 9 * width * width + width + width * out + out
            conv += (channels * out + out) if block == 0 else 0
            norms += 2 * width + (0 if stage == block == 0 else channels)
            channels = out
        width = out
    norms += channels
    model = build("resnet56v2")
    assert sum(p.numel() for p in model.parameters()) == conv + 2 * norms + 257 * 10 == 1_663_338
    kept = sum(b.numel() for name, b in model.named_buffers() if "running" in name)
    assert 1_663_338 + kept == 1_673_738  # Keras counts running statistics among the parameters


@pytest.mark.parametrize("name", ["vgg16", "resnet56v2", "densenet-bc-100-12"])
def test_batch_norm_is_that_of_keras(name):
    norms = [m for m in build(name).modules() if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d))]
    assert norms
    assert {(m.eps, m.momentum) for m in norms} == {(EPSILON, MOMENTUM)}


@pytest.mark.parametrize(("name", "decays"), [("vgg16", {0.0, 1e-3}), ("resnet56v2", {0.0, 2e-4, 0.02})])
def test_decay_groups_have_every_parameter_once_and_decay_as_keras_does(name, decays):
    model = build(name)
    groups = list(model.decay_groups())
    assert sorted(id(p) for g in groups for p in g["params"]) == sorted(map(id, model.parameters()))
    assert {g["weight_decay"] for g in groups} == decays
    decayed = [p for g in groups if g["weight_decay"] for p in g["params"]]
    assert all(p.dim() > 1 for p in decayed)
    keras = sum(g["weight_decay"] / 2 * p.square().sum() for g in groups for p in g["params"])
    keras.backward()
    for group in groups:
        for p in group["params"]:
            torch.testing.assert_close(p.grad, group["weight_decay"] * p.detach())


def small(name):
    """Each network, with as little work as its kind allows."""
    if name == "transunet":
        return build(name, size=32), torch.randn(2, 1, 32, 32)
    shape = next(case[2] for case in CASES if case[0] == name)
    return build(name), torch.randn(2, *shape)


@pytest.mark.parametrize("name", [case[0] for case in CASES if "101" not in case[0]])
def test_every_parameter_matters(name, monkeypatch):
    monkeypatch.setattr(transunet, "LAYERS", 1)
    torch.manual_seed(0)
    model, images = small(name)
    model(images).square().mean().backward()
    silent = [key for key, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert not silent
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_text_cnn():
    vectors = torch.randn(50, 100)
    model = TextCNN(vectors)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert trained == (500 + 1) * 128 + 2 * (640 + 1) * 128 + 129 * 128 + 129 * 20
    words = torch.randint(0, 50, (3, 40), dtype=torch.int32)
    x = vectors[words.long()].transpose(1, 2)
    for conv in model.convs[:2]:
        x = torch.stack([F.relu(conv(x))[:, :, i : i + 5].amax(2) for i in range(x.shape[2] - 4 - 4)], 2)
    expected = model.head(F.relu(model.hidden(F.relu(model.convs[2](x)).amax(2))))
    torch.testing.assert_close(model(words), expected)
    assert not model.embedding.weight.requires_grad
    assert model(words[:, :21]).shape == (3, 20)


def test_thin_shortcuts_are_subsampled_identities():
    block = BasicBlock(16, 32, 2)
    nn.init.zeros_(block.bn2.weight)
    x = torch.randn(2, 16, 8, 8)
    y = block(x)
    assert torch.equal(y[:, 8:24], F.relu(x[:, :, ::2, ::2]))
    assert y[:, :8].eq(0).all()
    assert y[:, 24:].eq(0).all()
    assert sum(isinstance(m, nn.Conv2d) for m in ThinResNet(9).modules()) == 55  # ResNet-56, with its linear layer


def test_unet_pools_by_four_at_the_bottom_and_says_what_it_needs():
    model = UNet(channels=3, classes=2)
    sizes = []
    for level in model.down:
        level.register_forward_hook(lambda _m, _i, out: sizes.append(out.shape[-1]))
    model(torch.randn(1, 3, 64, 64))
    assert sizes == [64, 32, 16, 8, 2]
    with pytest.raises(ValueError, match=r"sides that are multiples of 32, not \(48, 64\)"):
        model(torch.randn(1, 3, 48, 64))


def test_deeplab_keeps_an_eighth_and_upsamples_any_size():
    with torch.device("meta"):
        model = DeepLabV3()
        assert model.encoder(torch.empty(1, 3, 64, 64)).shape == (1, 2048, 8, 8)
        assert model.eval()(torch.empty(1, 3, 65, 49)).shape == (1, 21, 65, 49)
    strides = [m.stride for m in model.encoder.layer4.modules() if isinstance(m, nn.Conv2d)]
    assert set(strides) == {(1, 1)}


def test_imagenet_weights_load_without_their_head():
    names = {key for key, _ in Encoder((3, 4, 6, 3)).state_dict().items()}
    assert {"conv1.weight", "layer1.0.downsample.1.running_var", "layer4.2.bn3.bias"} <= names  # torchvision's
    encoder, other = Encoder((1, 1, 1, 1)), Encoder((1, 1, 1, 1))
    encoder.load_pretrained(other.state_dict() | {"fc.weight": torch.zeros(3), "fc.bias": torch.zeros(3)})
    assert torch.equal(encoder.conv1.weight, other.conv1.weight)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        encoder.load_pretrained(other.state_dict() | {"head.weight": torch.zeros(3)})


def test_transunet_says_what_it_needs():
    with pytest.raises(ValueError, match="a size that is a multiple of 16, not 100"):
        build("transunet", size=100)
    with torch.device("meta"):
        model = build("transunet", size=32)
    with pytest.raises(ValueError, match=r"built for 32 x 32, not \(64, 64\)"):
        model(torch.empty(1, 1, 64, 64))


def test_standardised_filters_have_mean_0_and_variance_1():
    """A constant image then gives only what the filter sums to, which is nothing; scaling a filter changes nothing."""
    conv = transunet.StandardisedConv(3, 4, 3, bias=False)
    assert conv(torch.ones(1, 3, 5, 5)).abs().max() < 1e-5
    x = torch.randn(1, 3, 5, 5)
    before = conv(x)
    with torch.no_grad():
        conv.weight.mul_(50).add_(7)
    torch.testing.assert_close(conv(x), before, rtol=1e-3, atol=1e-3)
