"""SVLS and NACL against the released code, and against MONAI's reading of NACL."""

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from test_golden_losses import EXACT, load, worst

from confide.core.neighbours import proportions
from confide.core.simplex import one_hot
from confide.core.windows import shell_weights
from confide.losses import NACL, SVLS

SINGLE = 1e-6  # of code that keeps kernels or priors in float32
NUMBERS = ("max", "min", "median", "mode")


def released():
    """The cases of NACL's own code: one picture, and a prior for every kernel."""
    with np.load(Path(__file__).parent / "loss_nacl_released.npz", allow_pickle=False) as arrays:
        cases = json.loads(str(arrays["meta_json"]))
        shared = {key: torch.from_numpy(arrays[key]) for key in ("logits", "labels", "img")}
        for case in cases:
            kwargs = case["kwargs"]
            case |= shared | {key: torch.from_numpy(arrays[f"{case['case']}_{key}"]) for key in ("loss", "grad")}
            case["tau"] = torch.from_numpy(arrays[f"tau_{kwargs['kernel_ops']}_{kwargs['kernel_size']}"])
    return {case["case"]: case for case in cases}


def monai():
    cases = load("nacl_monai")
    with np.load(Path(__file__).parent / "loss_nacl_monai.npz", allow_pickle=False) as arrays:
        return {key: case | {"tau": torch.from_numpy(arrays[f"{key}_tau"])} for key, case in cases.items()}


CASES = released()
MONAI = monai()


def build(kwargs, **options):
    """Outside the image the released code sees class 0, except behind its Gaussian, which sees the nearest pixel."""
    kernel = kwargs["kernel_ops"]
    where = {"padding": "replicate" if kernel == "gaussian" else "background"}
    what = {"image_proportions_l1": "l1", "image_proportions_l2": "l2"}.get(kernel)
    where |= {"prior": "proportions", "image_distance": what} if what else {"prior": kernel}
    return NACL(**where, kernel_size=kwargs["kernel_size"], strength=kwargs["alpha"], **form(kwargs), **options)


def form(kwargs):
    on = "probs" if kwargs.get("is_softmax") else "logits"
    return {"distance": kwargs.get("distance_type", "l1"), "on": on}


def side(case):
    return {"image": case["img"]} if case["kwargs"]["kernel_ops"].startswith(("image", "bilateral")) else {}


def ours(criterion, case):
    z = case["logits"].clone().requires_grad_()
    value = criterion(z, case["labels"], **side(case))
    value.backward()
    return value.detach(), z.grad


def prior_of(criterion, case):
    """What the logits are compared with."""
    rows, kept, context = criterion.prepare(case["logits"], case["labels"], **side(case))
    known = criterion.prior in NUMBERS
    return rows.restore(one_hot(kept.z, *context) if known else proportions(kept.z, kept.y, *context))


KERNELS = {key: (case["kwargs"]["kernel_ops"], case["kwargs"]["kernel_size"]) for key, case in CASES.items()}
CENTRE = [key for key, kernel in KERNELS.items() if kernel == ("gaussian", 5)]
WRONG = [key for key, (name, _) in KERNELS.items() if name in ("bilateral", "gradient")]
RIGHT = [key for key in CASES if key not in WRONG + CENTRE]


@pytest.mark.parametrize("fused", [False, "auto"], ids=["autograd", "one_pass"])
@pytest.mark.parametrize("key", RIGHT)
def test_released_values_gradients_and_priors(key, fused):
    """The kernels mean and gaussian keep float32 priors; all others agree in the last digits."""
    case = CASES[key]
    criterion = build(case["kwargs"], fused=fused)
    tolerance = SINGLE if case["kwargs"]["kernel_ops"] in ("mean", "gaussian") else EXACT
    value, gradient = ours(criterion, case)
    assert worst(value, case["loss"]) <= tolerance
    assert worst(gradient, case["grad"]) <= tolerance
    assert worst(prior_of(criterion, case), case["tau"]) <= tolerance


@pytest.mark.parametrize("key", CASES)
def test_the_formula_is_the_released_one_whatever_the_prior(key):
    """Given their prior, ours has their value and gradient."""
    case = CASES[key]
    criterion = NACL(prior="mean", strength=case["kwargs"]["alpha"], **form(case["kwargs"]))
    rows, kept, _ = criterion.prepare(case["logits"], case["labels"])
    z = kept.z.clone().requires_grad_()
    prior = rows.follow(case["tau"]), torch.ones_like(kept.weight, dtype=torch.float64)
    value = criterion.loss(z, kept.y, *prior).mean()
    value.backward()
    assert worst(value.detach(), case["loss"]) <= EXACT
    assert worst(rows.restore(z.grad), case["grad"]) <= EXACT


def window(case, weigh):
    """The mean over the nine pixels of `weigh` times their label; outside lie class 0 and black."""
    labels = torch.nn.functional.pad(case["labels"], [1] * 4)
    image = torch.nn.functional.pad(case["img"][:, 0], [1] * 4)
    hot = torch.nn.functional.one_hot(labels, case["logits"].shape[1]).double().movedim(-1, 1)
    height, width = case["labels"].shape[1:]
    total = 0.0
    for i, j in product(range(3), repeat=2):
        apart = (image[:, i : i + height, j : j + width] - case["img"][:, 0]).abs()
        total = (
            total + weigh(apart, (i - 1) ** 2 + (j - 1) ** 2).unsqueeze(1) * hot[:, :, i : i + height, j : j + width]
        )
    return total / 9


@pytest.mark.parametrize("key", WRONG)
def test_released_bilateral_weights_grow_with_the_difference(key):
    """Not normalised, and 0 for the pixel itself; "gradient" is the same without the Gaussian. Ours fall with it."""
    case = CASES[key]
    near = case["kwargs"]["kernel_ops"] == "bilateral"
    bell = sum(math.exp(-(i * i + j * j) / 2) for i, j in product((-1, 0, 1), repeat=2))
    theirs = window(case, lambda apart, square: apart * (math.exp(-square / 2) / bell if near else 1.0))
    assert worst(theirs, case["tau"]) <= SINGLE
    mine = build(case["kwargs"] | {"kernel_ops": "bilateral"})
    true = window(case, lambda apart, square: (-apart.square() - square / 2).exp())
    shown = case | {"kwargs": case["kwargs"] | {"kernel_ops": "bilateral"}}
    assert worst(prior_of(mine, shown), true / true.sum(1, keepdim=True)) <= EXACT
    assert worst(ours(mine, shown)[0], case["loss"]) > 1e-4


@pytest.mark.parametrize("key", CENTRE)
def test_released_gaussian_of_size_5_weighs_the_wrong_middle(key):
    """It takes for the middle what lies at (1, 1), so that the middle has 0.529 in place of 1/2."""
    case = CASES[key]
    mine = prior_of(build(case["kwargs"]), case)
    hot = one_hot(case["logits"].flatten(2), case["labels"].flatten(1)).view_as(case["logits"])
    around = (mine - 0.5 * hot) / 0.5
    bell = [math.exp(-(x * x + y * y) / 2) for x, y in product(range(-2, 3), repeat=2)]
    wrong, middle, total = bell[6] / sum(bell), bell[12] / sum(bell), 1.0
    share = (1 - wrong) / (1 - wrong + total - middle)
    assert share == pytest.approx(0.529, abs=5e-4)
    assert worst(share * hot + (1 - share) * around, case["tau"]) <= SINGLE
    assert worst(ours(build(case["kwargs"]), case)[0], case["loss"]) > 1e-5


def inner(x):
    return x[..., 1:-1, 1:-1]


@pytest.mark.parametrize("key", [key for key, case in MONAI.items() if case["kwargs"]["kernel_ops"] == "mean"])
def test_monai_mean_counts_pixels_that_are_not_there(key):
    """Theirs is ours times the share of the window that lies in the image; inside they are the same."""
    case = MONAI[key]
    criterion = NACL(prior="mean", distance=case["kwargs"]["distance_type"])
    ones = torch.ones(1, 1, *case["labels"].shape[1:], dtype=torch.float64)
    real = torch.nn.functional.avg_pool2d(ones, 3, stride=1, padding=1)
    mine = prior_of(criterion, case)
    assert worst(inner(mine), inner(case["tau"])) <= SINGLE
    assert worst(mine * real, case["tau"]) <= SINGLE
    z = case["logits"].clone().requires_grad_()
    off = z - mine * real
    ce = torch.nn.functional.cross_entropy(z, case["labels"])
    value = ce + 0.1 * (off.abs() if case["kwargs"]["distance_type"] == "l1" else off.square()).mean()
    value.backward()
    assert worst(value.detach(), case["loss"]) <= SINGLE
    assert worst(z.grad, case["grad"]) <= SINGLE
    _, gradient = ours(criterion, case)
    assert worst(inner(gradient), inner(case["grad"])) <= SINGLE


@pytest.mark.parametrize("key", [key for key, case in MONAI.items() if case["kwargs"]["kernel_ops"] == "gaussian"])
def test_monai_gaussian_is_an_ordinary_one(key):
    """As wide as four sigma whatever the kernel size, integrated over the pixel, with nothing outside the image."""
    case = MONAI[key]
    hot = one_hot(case["logits"].flatten(2), case["labels"].flatten(1)).view_as(case["logits"])
    edges = (torch.arange(-4, 6, dtype=torch.float64) - 0.5) / math.sqrt(2)
    bell = edges.erf().diff() / 2
    for axis in (2, 3):
        shape = [1, 1, 1, 1]
        shape[axis] = 9
        padding = [0, 0]
        padding[axis - 2] = 4
        kernel = bell.view(shape).expand(4, 1, *shape[2:])
        hot = torch.nn.functional.conv2d(hot, kernel, padding=padding, groups=4)
    assert worst(hot, case["tau"].double()) <= SINGLE
    assert worst(prior_of(NACL(prior="gaussian"), case), case["tau"].double()) > 0.1


SMOOTHED = load("svls2d_released")


@pytest.mark.parametrize("fused", [False, "auto"], ids=["autograd", "one_pass"])
@pytest.mark.parametrize("key", SMOOTHED)
def test_released_svls(key, fused):
    """Its kernel is in float32, and of size 3 whatever it is told (c3 asks for 5)."""
    case = SMOOTHED[key] | {"kwargs": SMOOTHED[key]["kwargs"] | {"kernel_ops": "svls"}}
    value, gradient = ours(SVLS(sigma=case["kwargs"]["sigma"], fused=fused), case)
    assert worst(value, case["loss"]) <= SINGLE
    assert worst(gradient, case["grad"]) <= SINGLE
    if case["kwargs"].get("ksize"):
        assert worst(ours(SVLS(sigma=case["kwargs"]["sigma"], kernel_size=5), case)[0], case["loss"]) > 1e-4


@pytest.mark.parametrize("key", ["c0", "c1"])
def test_released_kernel_and_labels_of_svls(key):
    case = SMOOTHED[key]
    with np.load(Path(__file__).parent / "loss_svls2d_released.npz", allow_pickle=False) as arrays:
        kernel, labels = (torch.from_numpy(arrays[f"{key}_{name}"]).double() for name in ("kernel", "soft_labels"))
    criterion = SVLS(sigma=case["kwargs"]["sigma"])
    edge, corner = shell_weights(2, criterion.sigma)
    assert torch.allclose(
        kernel / kernel.sum(),
        torch.tensor([[corner, edge, corner], [edge, 0.5, edge], [corner, edge, corner]]).double(),
        atol=SINGLE,
    )
    assert worst(criterion.target(case["logits"], case["labels"]), labels) <= SINGLE


def test_every_case_is_finite_and_named_once():
    assert (len(CASES), len(WRONG), len(CENTRE), len(MONAI), len(SMOOTHED)) == (30, 6, 1, 3, 3)
    assert all(c["finite"] and "error" not in c for group in (CASES, MONAI, SMOOTHED) for c in group.values())
