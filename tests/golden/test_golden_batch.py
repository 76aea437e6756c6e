"""Losses of whole batches, and what is added to a loss, against the released code."""

import pytest
import torch
from test_golden_losses import EXACT, load, worst

from confide.losses import DCA, MDCA, MMCE, ConfidencePenalty, Focal, LabelSmoothing, MbLS

SINGLE = 1e-7  # of code that counts labels, or keeps a margin or a kernel, in float32


class Dice(torch.nn.Module):
    """As the code of MbLS for segmentation has it: by image and class, without the background, smoothed by 1e-5."""

    def forward(self, input, target):
        p = input.softmax(1).flatten(2)[:, 1:]
        q = torch.nn.functional.one_hot(target, input.shape[1]).movedim(-1, 1).flatten(2)[:, 1:]
        overlap, area = (p * q).sum(2), p.sum(2) + q.sum(2)
        return (1 - (2 * overlap + 1e-5) / (area + 1e-5)).mean()


def smoothing(case):
    """The MDCA code leaves the true class 1 - alpha and shares alpha among the others."""
    classes = case["logits"].shape[1]
    return LabelSmoothing(smoothing=case["kwargs"]["alpha"] * classes / (classes - 1))


def mdca(case):
    kwargs = case["kwargs"]
    penalty = MDCA(strength=kwargs.get("beta", 1.0)).penalty_only()
    if "only" in kwargs:
        return penalty
    if kwargs["loss"] == "NLL+MDCA":
        return MDCA(strength=kwargs["beta"])
    return (Focal(gamma=kwargs["gamma"]) if kwargs["loss"] == "FL+MDCA" else smoothing(case)) + penalty


def dca(case):
    return DCA(strength=case["kwargs"]["beta"])


def mmce(case):
    return MMCE(strength=case["kwargs"]["lamda"])


def mmce_alone(case):
    return MMCE(strength=1.0).penalty_only()


def margins(case):
    return MbLS(margin=case["kwargs"]["margin"], strength=case["kwargs"]["alpha"])


def margins_and_dice(case):
    return margins(case) + Dice()


BUILDERS = {
    "mdca": mdca,
    "dca_mdcarepo": dca,
    "ls_mdcarepo": smoothing,
    "mmce_mbls": mmce,
    "mmce_focalcal": mmce_alone,
    "mbls_dice": margins_and_dice,
    "logit_margin_plus_cals": margins,  # its strengths, one a class, start out equal
}
CASES = {(file, name): case for file in BUILDERS for name, case in load(file).items()}
WEIGHTED = {
    **{("mmce_weighted_mbls", name): case for name, case in load("mmce_weighted_mbls").items()},
    ("focalcal_sum", "c3"): load("focalcal_sum")["c3"],
    ("mmce_focalcal", "c10"): CASES.pop(("mmce_focalcal", "c10")),
}
LOOSER = {key for key in CASES if key[0] in ("mdca", "logit_margin_plus_cals")} | {("dca_mdcarepo", "c3")}


def ours(criterion, case, fused):
    for part in criterion.modules():
        if hasattr(part, "fused"):
            part.fused = fused
    logits = case["logits"].clone().requires_grad_()
    value = criterion(logits, case["labels"])
    value.backward()
    return value.detach(), logits.grad


@pytest.mark.parametrize("fused", [False, "auto"], ids=["autograd", "one_pass"])
@pytest.mark.parametrize("key", CASES, ids="-".join)
def test_value_and_gradient(key, fused):
    """Where the released code rounds to float32 the value shows it, and nowhere else."""
    case = CASES[key]
    value, gradient = ours(BUILDERS[key[0]](case), case, fused)
    assert (EXACT < worst(value, case["loss"]) <= SINGLE) == (key in LOOSER)
    assert (worst(value, case["loss"]) <= EXACT) == (key not in LOOSER)
    assert worst(gradient, case["grad"]) <= (SINGLE if key in LOOSER else EXACT)


@pytest.mark.parametrize("key", [key for key in CASES if key[0] == "mdca"], ids="-".join)
def test_mdca_differs_by_its_sum_in_single_precision(key):
    """The released code adds up the gaps in a number in float32; that explains the whole difference."""
    case = CASES[key]
    z, beta = case["logits"], case["kwargs"].get("beta", 1.0)
    counts = torch.nn.functional.one_hot(case["labels"], z.shape[1]).double()
    gaps = (z.softmax(1) - counts).mean(0).abs()
    single = torch.tensor(0.0)
    for gap in gaps:
        single += gap
    value, _ = ours(BUILDERS["mdca"](case), case, False)
    rounded = (beta * (single / len(gaps))).double()
    assert worst(value - beta * gaps.mean() + rounded, case["loss"]) <= EXACT


@pytest.mark.parametrize("key", [key for key in CASES if key[0] == "mbls_dice"], ids="-".join)
def test_terms_of_margins_and_dice(key):
    """The released code returns total, cross-entropy, Dice, and the penalty without its strength."""
    case = CASES[key]
    terms = BUILDERS[key[0]](case).terms(case["logits"], case["labels"])
    total, ce, dice, penalty = case["terms"]
    assert worst(terms["loss"], total) <= EXACT
    assert worst(terms["ce"], ce) <= EXACT
    assert worst(terms["penalty"], dice + case["kwargs"]["alpha"] * penalty) <= EXACT


def embeddings(z, y):
    """The three products of the kernel means of right and wrong rows, [right, wrong, both], and how many there are."""
    c, right = z.softmax(1).max(1).values, z.argmax(1) == y
    kernel = (-(c[:, None] - c).abs() / 0.4).exp()
    off = torch.where(right, 1 - c, c)
    hit, miss = right.double(), 1 - right.double()
    pairs = ((hit, hit), (miss, miss), (hit, miss))
    numbers = hit.sum(), miss.sum()
    sums = [((a * off)[:, None] * (b * off) * kernel).sum() / (a.sum() * b.sum()) for a, b in pairs]
    return sums, numbers


@pytest.mark.parametrize("key", WEIGHTED, ids="-".join)
def test_released_weighted_mmce_divides_twice_and_draws_the_root(key):
    """By the number of pairs, in a mean, and by 1e-5 more than that again: theirs is not the printed quantity."""
    case = WEIGHTED[key]
    strength = case["kwargs"].get("lamda", 1.0)
    z = case["logits"].clone().requires_grad_()
    (u, v, both), (m, n) = embeddings(z, case["labels"])
    again = [(1 / (pairs.float() + 1e-5)).double() for pairs in (m * m, n * n, m * n)]  # counted in float32
    twice = u * again[0] + v * again[1] - 2 * both * again[2]
    alone = key[0] == "mmce_focalcal"
    ce = 0.0 if alone else torch.nn.functional.cross_entropy(z, case["labels"])
    theirs = ce + strength * (twice + 1e-10).sqrt()
    theirs.backward()
    assert worst(theirs.detach(), case["loss"]) <= EXACT
    assert worst(z.grad, case["grad"]) <= EXACT
    criterion = MMCE(strength=strength, weighted=True)
    value, gradient = ours(criterion.penalty_only() if alone else criterion, case, "auto")
    assert worst(value, (ce + strength * (u + v - 2 * both)).detach()) <= EXACT
    assert worst(value, case["loss"]) > 1e-2
    assert worst(gradient, case["grad"]) > 1e-2


NETCAL = load("netcal")


@pytest.mark.parametrize("fused", [False, "auto"], ids=["autograd", "one_pass"])
def test_netcal_draws_the_root_of_the_weighted_mmce(fused):
    case = NETCAL["c2"]
    value, gradient = ours(MMCE(strength=1.0, weighted=True).penalty_only(), case, fused)
    assert worst(value.sqrt(), case["loss"]) <= EXACT
    assert worst(gradient / (2 * value.sqrt()), case["grad"]) <= EXACT


@pytest.mark.parametrize("fused", [False, "auto"], ids=["autograd", "one_pass"])
def test_netcal_adds_the_entropy_that_should_be_taken_away(fused):
    """Its confidence penalty makes the model more confident when it is minimised."""
    case = NETCAL["c0"]
    value, gradient = ours(ConfidencePenalty(strength=1.0, over="mean").penalty_only(), case, fused)
    assert worst(-value, case["loss"]) <= EXACT
    assert worst(-gradient, case["grad"]) <= EXACT


def test_every_case_is_finite_and_named_once():
    assert len(CASES) == 7 + 2 + 2 + 2 + 2 + 2 + 2
    assert len(WEIGHTED) == 4
    assert len(NETCAL) == 2
    assert all(c["finite"] and "error" not in c for group in (CASES, WEIGHTED, NETCAL) for c in group.values())
