"""What only one of the row methods promises: ties, thresholds, saturation, masks, memory."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from confide.losses import CPC, Brier, ConfidencePenalty, DualFocal, Focal, FocalSD, cpc
from confide.testing.samples import batch, expect_close, one_hot, run, soft

MODES = pytest.mark.parametrize("fused", [False, "auto", True], ids=["autograd", "one_pass", "compiled"])


@MODES
@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", [Focal, DualFocal])
def test_powers_below_one_are_finite_where_a_probability_rounds_to_one(kind, gamma, fused):
    """The released focal loss gives NaN here."""
    z = torch.tensor([[30.0, 0.0, 0.0], [90.0, 0.0, 1.0], [5.0, 5.0, 5.0]])
    value, gradient = run(kind(gamma=gamma, fused=fused), z, torch.tensor([0, 0, 1]))
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert gradient[:2].abs().max() < 1e-6
    wanted = run(kind(gamma=gamma, fused=False), z.double(), torch.tensor([0, 0, 1]))
    expect_close(gradient.double(), wanted[1], 1e-6, "gradient in float32")


def test_second_derivatives_of_powers_below_one_are_finite():
    z = torch.tensor([[30.0, 0.0, 0.0], [90.0, 0.0, 1.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(Focal(gamma=0.5, fused=False)(z, torch.tensor([0, 0])), z, create_graph=True)
    (curvature,) = torch.autograd.grad(gradient.square().sum(), z)
    assert curvature.isfinite().all()


def test_the_released_power_gives_nan():
    """What the test above guards against."""
    log_p = torch.tensor([[30.0, 0.0, 0.0]], requires_grad=True).log_softmax(1)[:, 0]
    (gradient,) = torch.autograd.grad(-((1 - log_p.exp()) ** 0.5 * log_p).sum(), log_p)
    assert gradient.isnan().all()


@MODES
def test_of_tied_rivals_dual_focal_moves_the_lowest(fused):
    """What ties with the true class is not below it: classes 1 and 4 are its rivals, 0 and 2 are not."""
    z = torch.tensor([[3.0, 1.0, 3.0, -2.0, 1.0]]).double()
    _, gradient = run(DualFocal(fused=fused), z, torch.tensor([2]))
    _, alone = run(DualFocal(fused=fused), z - torch.tensor([0, 0, 0, 0, 1e-9]).double(), torch.tensor([2]))
    expect_close(gradient, alone, 1e-8, "gradient with the tie broken in favour of the lowest")
    assert gradient[0, 1] - gradient[0, 4] > 0.01
    assert gradient[0, 0] > 0
    _, wide = run(DualFocal(fused=fused), z, one_hot(torch.tensor([2]), 5))
    expect_close(wide, gradient, 1e-12, "gradient of a one-hot target")


@MODES
def test_dual_focal_without_a_rival_is_focal(fused):
    """Nothing lies below the true class, be it the last or one of equals."""
    z = torch.tensor([[2.0, 1.0, 0.5], [1.0, 1.0, 1.0], [0.3, 0.3, 2.0]]).double()
    y = torch.tensor([2, 1, 0])
    for target in (y, one_hot(y, 3)):
        wanted = run(Focal(gamma=5.0, fused=False), z, target)
        for found, other in zip(run(DualFocal(fused=fused), z, target), wanted, strict=True):
            expect_close(found, other, 1e-12, "against the focal loss")


def test_flsd_jumps_at_its_threshold_and_does_not_push_across():
    """Just below and just above, each row has the gradient of its own gamma."""
    for p, gamma in ((0.2 - 1e-6, 5.0), (0.2 + 1e-6, 3.0)):
        z = torch.tensor([[p, 1 - p - 0.1, 0.1]]).double().log()
        wanted = run(Focal(gamma=gamma), z, torch.tensor([0]))
        for found, other in zip(run(FocalSD(), z, torch.tensor([0])), wanted, strict=True):
            assert torch.equal(found, other)


@MODES
def test_the_entropy_moves_improbable_classes(fused):
    """The released code clamps p at 1e-10, below which it has no gradient."""
    z = torch.tensor([[30.0, 0.0, 1.0]]).double()
    y = torch.tensor([0])
    _, with_entropy = run(ConfidencePenalty(strength=1.0, fused=fused), z, y)
    _, without = run(ConfidencePenalty(strength=0.0, fused=fused), z, y)
    p = z.softmax(1)
    assert p[0, 1] < 1e-12
    pushed = (with_entropy - without)[0, 1:] / p[0, 1:]
    expect_close(pushed, z[0, 1:] - 30, 1e-3, "push on a class, by its probability")  # log p + H


@MODES
@pytest.mark.parametrize("make", [Focal, FocalSD, DualFocal, ConfidencePenalty, Brier], ids=lambda m: m.__name__)
def test_masked_classes_with_soft_targets(make, fused):
    z, y = batch()
    hidden = torch.cat((z, torch.full((8, 1), -torch.inf).double()), 1)
    q = soft(y, 5)
    wanted = run(make(), z, q)
    found = run(make(fused=fused), hidden, torch.cat((q, torch.zeros(8, 1).double()), 1))
    expect_close(found[0], wanted[0], 1e-12, "value with a masked class")
    expect_close(found[1][:, :5], wanted[1], 1e-12, "gradient with a masked class")
    assert not found[1][:, 5].any()


def test_soft_brier_is_the_squared_distance_and_a_constant():
    z, y = batch()
    q = soft(y, 5)
    value, gradient = run(Brier(reduction="sum"), z, q)
    distance, slope = run(lambda z, q: (z.softmax(1) - q).square().sum(), z, q)
    expect_close(value - distance, (q * (1 - q)).sum(), 1e-12, "constant")
    expect_close(gradient, slope, 1e-12, "gradient")


@MODES
def test_two_classes_have_no_pair_beside_the_true_one(fused):
    """The released code divides by zero here."""
    z, y = batch((8, 2))
    value, gradient = run(CPC(pairs=0.7, rest=5.0, fused=fused), z, y)
    wanted = run(lambda z, y: 1.7 * torch.nn.functional.cross_entropy(z, y), z, y)
    expect_close(value, wanted[0], 1e-12, "value")
    expect_close(gradient, wanted[1], 1e-12, "gradient")


@pytest.mark.parametrize("shape", [(16, 40), (2, 40, 3, 3)])
def test_pairs_part_by_part_are_the_whole(shape, monkeypatch):
    z, y = batch(shape)
    for target in (y, soft(y, 40)):
        whole = run(CPC(fused=False), z, target)
        for budget in (1, 5000, 20000):
            monkeypatch.setattr(cpc, "BUDGET", budget)
            for fused in ("auto", False):
                parts = run(CPC(fused=fused, validate="off"), z, target)
                expect_close(parts[0], whole[0], 1e-12, "value")
                expect_close(parts[1], whole[1], 1e-12, "gradient")


def peak(criterion, z, y):
    """Peak of the memory that one step allocates, in numbers."""
    z = z.clone().requires_grad_()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        criterion(z, y).backward()
    held = highest = 0
    for event in recorded.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            highest = max(highest, held)
    return highest / z.element_size()


@pytest.mark.parametrize("fused", [False, "auto"], ids=["autograd", "one_pass"])
def test_pairs_of_a_thousand_classes_stay_within_the_budget(fused, monkeypatch):
    """A few tensors of the budget's size live at once; all pairs would be sixteen times as many."""
    monkeypatch.setattr(cpc, "BUDGET", 1 << 18)
    z, y = batch((4, 1000), torch.float32)
    monkeypatch.setattr("confide.losses.loss.pays", lambda *_: False)
    assert peak(CPC(fused=fused), z, y) < 9 * (1 << 18)
    monkeypatch.setattr(cpc, "BUDGET", 1 << 30)
    assert peak(CPC(fused=fused), z, y) > 16 * (1 << 18)


def test_compiled_pairs_are_not_stored():
    z, y = batch((32, 1000), torch.float32)
    criterion = CPC(fused=True)
    compiled = run(criterion, z, y)
    assert peak(criterion, z, y) < 5 * z.numel()
    for found, wanted in zip(compiled, run(CPC(fused=False), z.double(), y), strict=True):
        expect_close(found.double(), wanted, 1e-5, "compiled")
    whole = torch.compile(CPC(), fullgraph=True)
    for found, wanted in zip(run(whole, z, y), compiled, strict=True):
        expect_close(found, wanted, 1e-5, "inside torch.compile")
