"""Focal losses, confidence penalty, squared margins, pairs and the Brier score against the released code."""

import math

import pytest
import torch
from test_golden_losses import EXACT, load, worst

from confide.losses import CPC, Brier, ConfidencePenalty, CrossEntropy, DualFocal, Focal, FocalSD, MbLSSquared


def focal(kwargs):
    return Focal(gamma=kwargs["gamma"], reduction="mean" if kwargs.get("size_average") else "sum")


def focal_sd(kwargs):
    """Its argument gamma holds from p_y = 0.5 on; no row of these cases with another gamma than 3 gets there."""
    return FocalSD(reduction="mean" if kwargs["size_average"] else "sum")


def dual_focal(kwargs):
    return DualFocal(gamma=kwargs["gamma"])


def summed(kwargs):
    return focal(kwargs) if kwargs["fn"] == "focal_loss(sum)" else CrossEntropy(reduction="sum")


def penalty(kwargs):
    return ConfidencePenalty(strength=kwargs["alpha"], over="mean")


def squared(kwargs):
    return MbLSSquared(margin=kwargs["margin"], strength=kwargs["alpha"])


def pairwise(kwargs):
    return CPC(pairs=kwargs.get("lambd_bdc", 1.0), rest=kwargs.get("lambd_bec", 1.0))


def brier(kwargs):
    return Brier()


BUILDERS = {
    "focal_mbls": focal,
    "focalcal_sum": summed,
    "flsd_mbls": focal_sd,
    "dual_focal": dual_focal,
    "ecp_mbls": penalty,
    "mbls_l2_released": squared,
    "cpc_cals": pairwise,
    "brier_mbls": brier,
}
ELSEWHERE = {("focalcal_sum", "c3")}  # weighted MMCE
CASES = {(file, name): case for file in BUILDERS for name, case in load(file).items() if (file, name) not in ELSEWHERE}

# What differs by design; each has a test of its own below.
VALUE_DIFFERS = {key for key in CASES if key[0] in ("cpc_cals", "mbls_l2_released")}
GRADIENT_DIFFERS = {key for key in CASES if key[0] == "mbls_l2_released"} | {("dual_focal", c) for c in ("c3", "c11")}


def ours(key, fused="auto"):
    """Value and gradient."""
    case = CASES[key]
    logits = case["logits"].clone().requires_grad_()
    criterion = BUILDERS[key[0]](case["kwargs"])
    criterion.fused = fused
    value = criterion(logits, case["labels"])
    value.backward()
    return value.detach(), logits.grad


def keys(*files):
    return pytest.mark.parametrize("key", [key for key in CASES if key[0] in files], ids="-".join)


@pytest.mark.parametrize("fused", [False, "auto"], ids=["autograd", "one_pass"])
@pytest.mark.parametrize("key", CASES, ids="-".join)
def test_value_and_gradient(key, fused):
    """Where a difference is listed it is there, and where none is listed there is none."""
    value, gradient = ours(key, fused)
    assert (worst(value, CASES[key]["loss"]) > EXACT) == (key in VALUE_DIFFERS)
    assert (worst(gradient, CASES[key]["grad"]) > EXACT) == (key in GRADIENT_DIFFERS)


@keys("dual_focal")
def test_dual_focal_differs_only_in_which_of_several_equal_rivals_moves(key):
    """We move the lowest, the released code whichever topk returns; together they move alike."""
    case, (_, gradient) = CASES[key], ours(key)
    equal = (case["logits"].unsqueeze(1) == case["logits"].unsqueeze(2)).double()
    together = [torch.bmm(equal, g.unsqueeze(2)) for g in (gradient, case["grad"])]
    assert worst(*together) <= EXACT


def test_released_gamma_of_flsd_meets_no_row():
    others = [case for (file, _), case in CASES.items() if file == "flsd_mbls" and case["kwargs"]["gamma"] != 3]
    assert len(others) == 1
    p = others[0]["logits"].softmax(1).gather(1, others[0]["labels"].unsqueeze(1))
    assert (p < 0.2).any()
    assert ((p >= 0.2) & (p < 0.5)).any()
    assert not (p >= 0.5).any()


@keys("ecp_mbls")
def test_ecp_terms(key):
    """Total, cross-entropy, and the mean of -p log p over rows and classes."""
    case = CASES[key]
    terms = BUILDERS[key[0]](case["kwargs"]).terms(case["logits"], case["labels"])
    total, ce, entropy = case["terms"]
    assert worst(terms["loss"], total) <= EXACT
    assert worst(terms["ce"], ce) <= EXACT
    assert worst(terms["penalty"], -case["kwargs"]["alpha"] * entropy) <= EXACT


@keys("cpc_cals")
def test_cpc_differs_by_the_pairs_of_a_class_with_itself(key):
    """A constant. And the released code adds 1e-10 inside its logarithms."""
    case, (value, _) = CASES[key], ours(key)
    rest = case["kwargs"].get("lambd_bec", 1.0)
    itself = rest * math.log(2) / (2 * (case["logits"].shape[1] - 2))
    assert worst(value + itself, case["loss"]) <= 1e-10
    first, second = (CPC(pairs=p, rest=r).terms(case["logits"], case["labels"])["penalty"] for p, r in ((1, 0), (0, 1)))
    _, _, true, level = case["terms"]
    assert worst(first, true) <= EXACT
    assert worst(rest * second + itself, rest * level) <= 1e-10


@keys("mbls_l2_released")
def test_released_square_has_no_hinge(key):
    """LogitMarginL2 is (d - m)^2 of every distance, those below the margin and that of the predicted class included."""
    case = CASES[key]
    z, kwargs = case["logits"].clone().requires_grad_(), case["kwargs"]
    penalty = (z.max(1, keepdim=True).values - z - kwargs["margin"]).square().mean()
    loss = torch.nn.functional.cross_entropy(z, case["labels"]) + kwargs["alpha"] * penalty
    loss.backward()
    assert worst(loss.detach(), case["loss"]) <= EXACT
    assert worst(penalty.detach(), case["terms"][2]) <= EXACT
    assert worst(z.grad, case["grad"]) <= EXACT


def test_hinge_changes_nothing_where_every_distance_exceeds_the_margin():
    """Three rows of c16; the value differs by what the predicted class adds."""
    key = ("mbls_l2_released", "c16")
    case, (_, gradient) = CASES[key], ours(key)
    z, margin = case["logits"], case["kwargs"]["margin"]
    beyond = (z.amax(1, keepdim=True) - z > margin).sum(1) == z.shape[1] - 1
    assert beyond.sum() == 3
    assert worst(gradient[beyond], case["grad"][beyond]) <= EXACT
    assert worst(gradient[~beyond], case["grad"][~beyond]) > 1e-3


def test_every_case_is_finite_and_named_once():
    assert len(CASES) == 7 + 2 + 3 + 4 + 4 + 6 + 4 + 2
    assert all(case["finite"] and "error" not in case for case in CASES.values())
