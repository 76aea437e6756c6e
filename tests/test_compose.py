"""Losses that are added and multiplied: values, gradients, what is handed on, and what is refused."""

import copy
import re

import pytest
import torch
from torch import nn

from confide import ACLS, CrossEntropy, LabelRelaxation, LabelSmoothing, MbLS
from confide.core import compiler
from confide.core.errors import InputError, KnobError
from confide.losses import ALL
from confide.testing.samples import batch, expect_close, run, soft


class Dice(nn.Module):
    """A module from outside, as a user would bring it: one number, smooth, with a buffer and a parameter."""

    def __init__(self):
        super().__init__()
        self.register_buffer("floor", torch.tensor(1e-5, dtype=torch.float64))
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, input, target):
        p = input.softmax(1).movedim(1, -1).flatten(0, -2)
        q = nn.functional.one_hot(target.flatten(), p.shape[-1])
        overlap, size = (p * q).sum(0), (p + q).sum(0)
        return self.scale * (1 - (2 * overlap + self.floor) / (size + self.floor)).mean()


def penalty(criterion, z, y):
    """What a loss adds to cross-entropy, and its gradient, by subtraction in float64."""
    whole, ce = run(criterion, z, y), run(CrossEntropy(reduction=criterion.reduction), z, y)
    return whole[0] - ce[0], whole[1] - ce[1]


@pytest.mark.parametrize("fused", ["auto", True, False])
def test_a_sum_is_the_sum_of_values_and_gradients(fused):
    z, y = batch((2, 5, 3, 4))
    dice, margins = Dice(), MbLS(margin=5, fused=fused)
    for criterion in (margins + dice, dice + margins, sum([margins, dice])):
        value, gradient = run(criterion, z, y)
        one, two = run(margins, z, y), run(dice, z, y)
        expect_close(value, one[0] + two[0], 1e-12, "value")
        expect_close(gradient, one[1] + two[1], 1e-12, "gradient")


class ChannelDice(nn.Module):
    """As MONAI's DiceLoss(to_onehot_y=True, softmax=True, include_background=False): its target has a class axis."""

    def forward(self, input, target):
        assert target.shape == (input.shape[0], 1, *input.shape[2:]), "ground truth has different shape"
        p = input.softmax(1)[:, 1:].flatten(2)
        q = nn.functional.one_hot(target.squeeze(1), input.shape[1]).movedim(-1, 1)[:, 1:].flatten(2)
        return (1 - (2 * (p * q).sum(2) + 1e-5) / (p.sum(2) + q.sum(2) + 1e-5)).mean()


@pytest.mark.parametrize("shape", [(2, 5, 6, 7), (2, 5, 3, 4, 5)])
@pytest.mark.parametrize("fused", ["auto", False])
def test_a_dice_loss_that_wants_a_class_axis(shape, fused):
    """MbLS(margin=5) + dice for images and volumes, by the adapter that the documentation shows."""
    z, y = batch(shape)
    dice = ChannelDice()
    criterion = MbLS(margin=5, fused=fused) + (lambda z, y: 0.5 * dice(z, y.unsqueeze(1)))
    value, gradient = run(criterion, z, y)
    one, two = run(MbLS(margin=5), z, y), run(lambda z, y: dice(z, y.unsqueeze(1)), z, y)
    expect_close(value, one[0] + 0.5 * two[0], 1e-12, "value")
    expect_close(gradient, one[1] + 0.5 * two[1], 1e-12, "gradient")
    terms = criterion.terms(z, y)
    expect_close(terms["ce"], CrossEntropy()(z, y), 1e-12, "cross-entropy")
    expect_close(terms["function"], 0.5 * two[0], 1e-12, "Dice")
    expect_close(terms["penalty"], one[0] - terms["ce"] + 0.5 * two[0], 1e-12, "what is not cross-entropy")
    doubled = run(2 * criterion, z, y)
    expect_close(doubled[1], 2 * gradient, 1e-12, "gradient of twice the loss")
    with pytest.raises(AssertionError, match="ground truth has different shape"):  # its own words come through
        (MbLS(margin=5) + dice)(z, y)


def test_factors_multiply_and_sums_are_flat():
    z, y = batch()
    dice = Dice()
    criterion = 3 * (2 * MbLS() + dice) * 0.5 + (lambda z, y: 10 * dice(z, y))
    assert criterion.weights == [3.0, 1.5, 1.0]
    value, gradient = run(criterion, z, y)
    one, two = run(MbLS(), z, y), run(dice, z, y)
    expect_close(value, 3 * one[0] + 11.5 * two[0], 1e-12, "value")
    expect_close(gradient, 3 * one[1] + 11.5 * two[1], 1e-12, "gradient")
    criterion.weights[0] = 0.0
    expect_close(run(criterion, z, y)[1], 11.5 * two[1], 1e-12, "gradient after a weight changed")


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_penalty_only_is_the_loss_minus_cross_entropy(kind):
    z, y = batch((2, 5, 7))
    y[0, 0] = -100
    side = kind.example().example_side(tuple(y.shape))
    for target in (y, soft(y.clamp(min=0), 5)):
        for reduction in ("mean", "sum") if kind.example().coupled else ("mean", "sum", "none"):
            whole = run(kind.example(reduction=reduction), z, target, **side)
            ce = run(CrossEntropy(reduction=reduction), z, target)
            for fused in ("auto", False):
                found = run(kind.example(reduction=reduction, fused=fused).penalty_only(), z, target, **side)
                expect_close(found[0], whole[0] - ce[0], 1e-12, "value")
                expect_close(found[1], whole[1] - ce[1], 1e-12, "gradient")


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_method_can_be_a_part(kind):
    z, y = batch((2, 5, 7))
    part = kind.example().penalty_only()
    side = part.example_side(tuple(y.shape))
    found, wanted = run(MbLS() + 0.5 * part, z, y, **side), run(part, z, y, **side)
    mine = run(MbLS(), z, y)
    expect_close(found[0], mine[0] + 0.5 * wanted[0], 1e-12, "value")
    expect_close(found[1], mine[1] + 0.5 * wanted[1], 1e-12, "gradient")
    terms = (MbLS() + 0.5 * part).terms(z, y, **side)
    expect_close(terms["loss"], found[0], 1e-12, "terms")
    with pytest.raises(KnobError, match="would count cross-entropy 2 times"):  # one taken off the other leaves none
        MbLS() + -1 * ACLS()
    with pytest.raises(KnobError, match="would count cross-entropy 2 times"):
        MbLS() + kind.example()


def test_the_gradient_of_a_penalty_is_exactly_zero_where_it_does_not_act():
    z, y = batch((64, 5), torch.float32)
    near = z / z.abs().max()  # all distances below the margin
    for fused in ("auto", True):
        value, gradient = run(MbLS(margin=10, fused=fused).penalty_only(), near, y)
        assert value == 0
        assert not gradient.any()


def test_two_penalties_and_one_cross_entropy():
    z, y = batch((2, 5, 7))
    value, gradient = run(MbLS() + ACLS().penalty_only(), z, y)
    mine, theirs = run(MbLS(), z, y), penalty(ACLS(), z, y)
    expect_close(value, mine[0] + theirs[0], 1e-12, "value")
    expect_close(gradient, mine[1] + theirs[1], 1e-12, "gradient")


def test_what_replaces_cross_entropy_can_take_its_place_in_another_loss():
    z, y = batch()
    found = run(CrossEntropy() + LabelRelaxation().penalty_only(), z, y)
    for mine, wanted in zip(found, run(LabelRelaxation(), z, y), strict=True):
        expect_close(mine, wanted, 1e-12, "cross-entropy plus the difference")


def test_a_penalty_is_a_copy_that_says_what_it_is():
    whole = MbLS(margin=4)
    part = whole.penalty_only()
    part.margin = 7.0
    assert whole.margin == 4.0
    assert repr(part) == "MbLS(margin=7.0, strength=0.1, over='mean', without cross-entropy)"
    assert "without" not in repr(whole)
    z, y = batch()
    terms = part.terms(z, y)
    assert terms["ce"] == 0
    assert terms["penalty"] == terms["loss"] > 0


def test_the_penalties_of_a_sum_are_all_but_its_cross_entropy():
    z, y = batch()
    dice = Dice()
    found = run(MbLS() + (0.5 * (nn.CrossEntropyLoss() + ACLS().penalty_only()) + dice).penalty_only(), z, y)
    wanted = run(MbLS() + 0.5 * ACLS().penalty_only() + dice, z, y)
    for mine, theirs in zip(found, wanted, strict=True):
        expect_close(mine, theirs, 1e-12, "the penalties of a sum")


@pytest.mark.parametrize("left", [CrossEntropy, MbLS, LabelSmoothing, LabelRelaxation])
def test_cross_entropy_is_not_counted_twice(left):
    mine = left.__name__
    said = (
        f"{mine} + ACLS would count cross-entropy 2 times, since both sides fit the labels: "
        f"write {mine}(...) + ACLS(...).penalty_only(), or weights that add up to 1, as in 0.5 * ({mine}(...)) + "
    )
    with pytest.raises(ValueError, match=re.escape(said)):
        left() + ACLS()


def test_cross_entropy_is_not_counted_more_than_once_by_weights():
    for make in (
        lambda: MbLS() + 0.1 * ACLS(),
        lambda: 0.6 * MbLS() + 0.6 * ACLS(),
        lambda: (MbLS() + Dice()) + ACLS(),
    ):
        with pytest.raises(KnobError, match=r"would count cross-entropy [12.]+ times"):
            make()
    with pytest.raises(KnobError, match=r"fit the labels: leave CrossEntropyLoss out$"):
        MbLS() + nn.CrossEntropyLoss()


def test_weights_that_add_up_to_one_are_a_mixture():
    z, y = batch()
    mixed = run(0.5 * CrossEntropy() + 0.5 * MbLS(), z, y)
    wanted = run(MbLS(strength=0.05), z, y)
    for found, expected in zip(mixed, wanted, strict=True):
        expect_close(found, expected, 1e-12, "half of the penalty")
    thirds = [LabelSmoothing(), MbLS(), ACLS()]
    assert (0.7 * thirds[0] + 0.2 * thirds[1] + 0.1 * thirds[2]).weights == [0.7, 0.2, 0.1]
    # Multiplying is no addition: twice a mixture, and more penalties beside it, are what they say.
    assert (2 * (0.5 * thirds[0] + 0.5 * thirds[1]) + Dice()).weights == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("option", [{"ignore_index": 255}, {"dim": -1}, {"reduction": "sum"}])
def test_options_that_differ_are_refused(option):
    (name, value), standard = *option.items(), {"ignore_index": -100, "dim": 1, "reduction": "mean"}
    said = f"MbLS has {name}={standard[name]!r} and ACLS has {name}={value!r}: the parts of one loss must agree"
    with pytest.raises(KnobError, match=re.escape(said)):
        MbLS() + ACLS(**option).penalty_only()
    with pytest.raises(KnobError, match="must agree"):
        Dice() + MbLS() + ACLS(**option).penalty_only()


def test_what_cannot_be_a_part_is_refused():
    with pytest.raises(KnobError, match=r"ACLS is a class: add an instance, ACLS\(\)"):
        MbLS() + ACLS
    for make in (lambda: MbLS() + 3, lambda: "x" + MbLS(), lambda: MbLS() + None):
        with pytest.raises(KnobError, match="a part must be a loss, a module or a function"):
            make()
    for factor in (float("nan"), float("inf"), True, "2", MbLS()):
        with pytest.raises(KnobError, match="multiplied by a finite number only"):
            MbLS() * factor


def test_parts_that_are_not_reduced_alike_are_refused():
    z, y = batch((2, 5, 3, 4))
    with pytest.raises(InputError, match=r"Dice gives a loss of shape \(\), MbLS one of shape \(2, 3, 4\)"):
        (MbLS(reduction="none") + Dice())(z, y)


def test_it_is_a_module():
    criterion = MbLS(weight=torch.ones(5, dtype=torch.float64)) + Dice()
    assert set(criterion.state_dict()) == {"parts.0.weight", "parts.1.scale", "parts.1.floor"}
    assert [name for name, _ in criterion.named_parameters()] == ["parts.1.scale"]
    assert not any(part.training for part in criterion.eval().parts)
    assert all(buffer.dtype == torch.float32 for buffer in criterion.to(torch.float32).buffers())
    other = MbLS(weight=torch.zeros(5)) + Dice()
    other.load_state_dict(criterion.state_dict())
    z, y = batch()
    for copied in (other, copy.deepcopy(criterion)):
        assert torch.equal(copied(z, y), criterion(z, y))
    criterion(z, y).backward()
    assert criterion.parts[1].scale.grad is not None


def test_it_shows_its_sum():
    assert repr(MbLS() + 0.5 * ACLS().penalty_only()) == f"{MbLS()!r} + 0.5 * {ACLS().penalty_only()!r}"
    assert repr(2 * CrossEntropy() + Dice()) == "2 * CrossEntropy() + Dice()"
    assert repr(CrossEntropy() + run) == "CrossEntropy() + run"


class Weighed(nn.Module):
    """Takes a side tensor by keyword."""

    def forward(self, input, target, *, image=None):
        return input.sum() * 0 + (0 if image is None else image.sum())


def test_keywords_go_to_the_parts_that_take_them():
    z, y = batch((8, 5))
    criterion = MbLS() + Weighed() + Dice()
    value = criterion(z, y, normalizer=2 * len(y), image=torch.tensor([3.0]))
    wanted = MbLS()(z, y) / 2 + 3 + Dice()(z, y)
    expect_close(value.detach(), wanted.detach(), 1e-12, "value with side tensors")
    assert criterion.terms(z, y, image=torch.tensor([3.0]))["Weighed"] == 3
    with pytest.raises(TypeError, match="no part of this loss takes index=; what they take: image, normalizer"):
        criterion(z, y, index=y)
    anything = MbLS() + (lambda z, y, **side: z.sum() * 0 + len(side))
    expect_close(anything(z, y, index=y), MbLS()(z, y) + 1, 1e-12, "a function that takes all keywords")


def test_terms_add_up_and_name_the_parts():
    z, y = batch((2, 5, 3, 4))
    y[0, 0, 0] = -100

    def area(input, target):
        return input.sum() * 0 + 2.5

    criterion = MbLS() + 0.5 * ACLS().penalty_only() + 2 * ACLS(margin=50).penalty_only() + area
    terms = criterion.terms(z.requires_grad_(), y)
    assert list(terms) == ["loss", "ce", "penalty", "active", "MbLS", "ACLS", "ACLS 2", "area"]
    assert not any(term.requires_grad for term in terms.values())
    expect_close(terms["loss"], criterion(z, y).detach(), 1e-12, "loss")
    expect_close(terms["ce"], CrossEntropy()(z, y).detach(), 1e-12, "cross-entropy")
    expect_close(terms["ce"] + terms["penalty"], terms["loss"], 1e-12, "ce + penalty")
    expect_close(sum(terms[name] for name in list(terms)[4:]), terms["loss"], 1e-12, "the parts")
    expect_close(terms["ACLS"], 0.5 * penalty(ACLS(), z, y)[0], 1e-12, "a part")
    acts = (MbLS().smoothing(z, y).C != 0) | (ACLS().smoothing(z, y).C != 0)
    expect_close(terms["active"], acts.sum() / (5 * (y != -100).sum()), 1e-6, "active")
    criterion.weights[1:3] = [0.0, 0.0]
    assert criterion.terms(z, y)["active"] == MbLS().terms(z, y)["active"]


def test_terms_of_rows_and_of_a_foreign_cross_entropy():
    z, y = batch((2, 5, 3, 4))
    rows = (MbLS(reduction="none") + ACLS(reduction="none").penalty_only()).terms(z, y)
    assert rows["loss"].shape == rows["ACLS"].shape == y.shape
    terms = (nn.CrossEntropyLoss() + ACLS().penalty_only()).terms(z, y)
    expect_close(terms["ce"], CrossEntropy()(z, y), 1e-12, "torch's cross-entropy")


def test_second_gradients_of_parts_add():
    z, y = batch((4, 5))
    parts = LabelSmoothing(fused=False), ACLS(fused=False).penalty_only(), Dice()

    def curvature(criterion):
        w = z.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(criterion(w, y), w, create_graph=True)
        return torch.autograd.grad(gradient[:, 0].sum(), w)[0]

    expect_close(curvature(sum(parts)), sum(curvature(part) for part in parts), 1e-12, "second gradient")
    half = z.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: sum(parts)(x, y), half)


def test_it_compiles_whole_inside_torch_compile():
    z, y = batch((2, 5, 7), torch.float32)
    criterion = MbLS() + 0.5 * ACLS().penalty_only() + Dice().float()
    torch._dynamo.reset()
    compiled = torch.compile(criterion, fullgraph=True, backend="aot_eager")
    for found, wanted in zip(run(compiled, z, y), run(criterion, z, y), strict=True):
        expect_close(found, wanted, 1e-5, "inside torch.compile")


def test_the_parts_keep_their_compiled_pass(monkeypatch):
    used = []
    monkeypatch.setattr("confide.losses.loss.compiled", lambda run, method, *_: used.append(repr(method)) or run)
    z, y = batch((2, 5), torch.float32)
    run(MbLS(fused=True) + ACLS(fused=True).penalty_only(), z, y)
    assert [name.split("(")[0] for name in used] == ["MbLS", "ACLS"]
    assert "without cross-entropy" in used[1]


@pytest.mark.filterwarnings("error")
def test_the_compiled_penalty_is_the_eager_one_beside_the_whole():
    z, y = batch((64, 5), torch.float32)
    whole, part = MbLS(fused=True), MbLS(fused=True).penalty_only()
    for _ in range(2):
        for criterion in (whole, part):
            eager = copy.deepcopy(criterion)
            eager.fused = False
            for found, wanted in zip(run(criterion, z, y), run(eager, z, y), strict=True):
                expect_close(found, wanted, 1e-6, repr(criterion))
    assert not any(entry.gave_up for entry in compiler._compiled.values())


def test_a_penalty_ignores_and_weighs_as_the_loss_does():
    z, y = batch((8, 5))
    y[:3] = 255
    weight = torch.linspace(0.5, 2, 5, dtype=torch.float64)
    options = {"ignore_index": 255, "weight": weight}
    found = run(MbLS(**options).penalty_only(), z, y)
    whole, ce = run(MbLS(**options), z, y), run(CrossEntropy(**options), z, y)
    expect_close(found[0], whole[0] - ce[0], 1e-12, "value")
    expect_close(found[1], whole[1] - ce[1], 1e-12, "gradient")
    assert not found[1][:3].any()
