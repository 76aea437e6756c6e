"""Checks of what a method computes: its gradient, its limits, its symmetries, its numbers at the extremes."""

from typing import Any

import torch

from confide.core.errors import InputError
from confide.core.simplex import softmax
from confide.losses.loss import Loss
from confide.testing import samples
from confide.testing.samples import Make, batch, call, expect_close, part_of, reductions, run, sample, side_of


def gradient_is_shift(make: Make) -> None:
    """Autograd of `loss` equals softmax - one_hot - `shift`, for labels and soft targets."""
    criterion = make(reduction="sum", fused=False)
    for z, y in (sample(make), batch((2, 5, 7))):
        for target in (y, samples.soft(y, 5)):
            _, gradient = run(criterion, z, target)
            closed = softmax(z) - criterion.target(z, target, **side_of(criterion, z))
            expect_close(gradient, closed, 1e-12, "gradient by autograd against the closed form")


def fused_is_plain(make: Make) -> None:
    """The one-pass value and gradient are those of autograd, for every reduction and kind of target."""
    z, y = batch((2, 5, 3, 4))
    y[0, 0, :2] = -100
    weight = torch.linspace(0.5, 2, 5, dtype=torch.float64)
    for reduction in reductions(make):
        for target in (y, samples.soft(y, 5)):
            for w in (None, weight):
                fast, plain = (run(make(fused=f, reduction=reduction, weight=w), z, target) for f in ("auto", False))
                expect_close(fast[0], plain[0], 1e-12, f"fused value, reduction={reduction}")
                expect_close(fast[1], plain[1], 1e-12, f"fused gradient, reduction={reduction}")


def limits_hold(make: Make) -> None:
    """At a declared limit the loss is the declared one, bit for bit, value and gradient."""
    kind = type(make())
    z, y = sample(make, dtype=torch.float32)
    for settings, other in kind.limits:
        for target in (y, samples.soft(y, 5).float()):
            for found, wanted in zip(run(make(**settings), z, target), run(other, z, target), strict=True):
                assert torch.equal(found, wanted), f"at {settings} this is not {other} bit for bit"


def torch_is_matched(make: Make) -> None:
    """At the limits that give cross-entropy, torch's own agrees for every reduction, weight and kind of target."""
    kind = type(make())
    z, y = batch((4, 5, 3), dtype=torch.float32)
    y[0, 0] = -100
    every = [settings for settings, other in kind.limits if type(other).__name__ == "CrossEntropy"]
    for settings in [*every, *([{}] if kind.__name__ == "CrossEntropy" else [])]:
        for reduction in reductions(make):
            for weight in (None, torch.linspace(0.5, 2, 5)):
                for target in (y, samples.soft(y, 5).float()):
                    options: dict[str, Any] = {"reduction": reduction, "weight": weight}
                    ours = run(make(**settings, **options), z, target)
                    torchs = run(torch.nn.CrossEntropyLoss(**options), z, target)
                    expect_close(ours[0], torchs[0], 1e-6, f"value against torch, {options}")
                    expect_close(ours[1], torchs[1], 1e-6, f"gradient against torch, {options}")


def one_hot_is_index(make: Make) -> None:
    """A one-hot float target means the same as the index."""
    z, y = batch((4, 5, 3))
    for reduction in reductions(make):
        by_index, by_hot = (run(make(reduction=reduction), z, t) for t in (y, samples.one_hot(y, 5)))
        expect_close(by_hot[0], by_index[0], 1e-6, "value of a one-hot target")
        expect_close(by_hot[1], by_index[1], 1e-6, "gradient of a one-hot target")


def soft_is_expectation(make: Make) -> None:
    """A soft target counts like copies of its row with hard labels in its proportions, class weights included."""
    z, y = sample(make)
    labels = torch.randint(5, (4, *y.shape), generator=torch.Generator().manual_seed(0))
    # With weights, the mixture would have to say which labels of neighbouring pixels came together.
    weight = None if make().traits.spatial else torch.linspace(0.5, 2, 5, dtype=torch.float64)
    criterion = make(reduction="sum", weight=weight)
    side = {name: torch.cat([tensor] * 4) for name, tensor in side_of(criterion, z).items()}
    copies = run(criterion, torch.cat([z] * 4), labels.flatten(0, 1), **side)
    found = run(criterion, z, torch.stack([samples.one_hot(one, 5) for one in labels]).mean(0))
    expect_close(found[0], copies[0] / 4, 1e-12, "loss of a soft target")
    expect_close(found[1], copies[1].reshape(4, *z.shape).mean(0), 1e-12, "gradient of a soft target")


def classes_can_be_renamed(make: Make) -> None:
    """Renaming the classes renames the gradient and nothing else."""
    z, y = sample(make)
    names = torch.randperm(5, generator=torch.Generator().manual_seed(0))
    value, gradient = run(make(), z, y)
    renamed = run(make(), z[:, names], names.argsort()[y])
    expect_close(renamed[0], value, 1e-12, "value after renaming the classes")
    expect_close(renamed[1], gradient[:, names], 1e-12, "gradient after renaming the classes")


def rows_can_be_reordered(make: Make) -> None:
    """Reordering the rows reorders the gradient and nothing else."""
    z, y = sample(make, 64)
    order, criterion = torch.randperm(len(z), generator=torch.Generator().manual_seed(0)), make()
    value, gradient = run(criterion, z, y)
    reordered = run(criterion, z[order], y[order], **part_of(side_of(criterion, z), order))
    expect_close(reordered[0], value, 1e-12, "value after reordering the rows")
    expect_close(reordered[1], gradient[order], 1e-12, "gradient after reordering the rows")


def constant_is_as_declared(make: Make) -> None:
    """Adding a constant to all logits changes nothing, if and only if the card says so."""
    z, y = sample(make)
    before, after = call(make(), z, y), call(make(), z + 30, y)
    same = bool((before - after).abs() < 1e-9)
    declared = make().traits.invariant
    assert same == declared, f"adding 30 to all logits changes {before:.6g} to {after:.6g}, the card says {declared=}"


def balance_is_as_declared(make: Make) -> None:
    """The gradient of every row sums to zero, if and only if the card says so."""
    z, y = sample(make)
    total = run(make(reduction="sum"), z, y)[1].sum(1).abs().max()
    declared = make().traits.balanced
    assert bool(total < 1e-9) == declared, f"row gradients sum to {total:.3g}, the card says {declared=}"


def extremes_are_finite(make: Make) -> None:
    """Finite at logits of +-1e4 in every dtype, with the right answer, with a wrong one, and at ties."""
    line = make().traits.spatial  # the rows as the pixels of one line
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        rows = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [1e4, 1e4, 1e4], [-1e4, -1e4, -1e4]], dtype=dtype)
        for target in (torch.tensor([0, 0, 1, 2]), torch.full((4, 3), 1 / 3)):
            for mode in ("auto", False):
                z, y = (x.movedim(0, -1).unsqueeze(0) if line else x for x in (rows, target))
                value, gradient = run(make(fused=mode), z, y)
                assert value.isfinite() and gradient.isfinite().all(), f"not finite in {dtype}, fused={mode}"
                assert gradient.dtype == dtype, f"gradient in {gradient.dtype} for an input in {dtype}"


def masks_are_as_declared(make: Make) -> None:
    """A class masked with -inf is as good as absent where the card allows it, and refused where it does not."""
    z, y = sample(make)
    hidden = torch.cat((z, torch.full_like(z[:, :1], -torch.inf)), 1)
    if not make().traits.masked:
        samples.expect_error(InputError, "logits have -inf in 8 rows", lambda: call(make(), hidden, y))
        return
    q = samples.soft(y, 5)
    for target, wide in ((y, y), (q, torch.cat((q, torch.zeros_like(q[:, :1])), 1))):
        value, gradient = run(make(), hidden, wide)
        expect_close(value, call(make(), z, target), 1e-12, "loss with a masked class")
        assert gradient.isfinite().all() and not gradient[:, 5].any()


def offsets_cost_no_digits(make: Make) -> None:
    """In float32, a constant of a thousand on all logits costs no digits beyond those that it takes from them."""
    if not make().traits.invariant:
        return
    z, y = sample(make, 64, torch.float32)
    far = z + 1000
    for found, wanted in zip(run(make(), far, y), run(make(), far.double(), y), strict=True):
        error = ((found.double() - wanted).abs() / wanted.abs().clamp(min=1e-3)).max()
        assert error < 1e-4, f"relative error {error:.3g} far from zero"


def half_is_near(make: Make) -> None:
    """In half precision value and gradient stay near those in float64 of the same logits."""
    for dtype, tolerance in ((torch.float16, 2e-3), (torch.bfloat16, 1e-2)):
        z, y = batch((2, 5, 3, 4), dtype)
        for mode in ("auto", False):
            value, gradient = run(make(fused=mode), z, y)
            exact = run(make(fused=mode), z.double(), y)
            expect_close(value.double(), exact[0], 1e-5, f"value in {dtype}")
            expect_close(gradient.double() * y.numel(), exact[1] * y.numel(), tolerance, f"gradient in {dtype}")


def lens_is_consistent(make: Make) -> None:
    """f, C and the effective label describe one shift, shaped like the input, and are zero in ignored rows."""
    z, y = batch((2, 5, 3, 4))
    y[0, 0, 0] = -100
    criterion: Loss = make()
    side = side_of(criterion, z)
    f, active = criterion.smoothing(z, y, **side)
    label = criterion.target(z, y, **side)
    kept = (y != -100).unsqueeze(1)
    shift = torch.where(kept, label - samples.one_hot(y.clamp(min=0), 5), 0.0)
    winner = samples.one_hot(z.argmax(1), 5) == 1
    expect_close(f, torch.where(winner, -shift, shift), 1e-12, "f against the effective label")
    assert torch.equal(active != 0, f != 0), "C is where f is not zero"
    assert not label[0, :, 0, 0].any(), "an ignored row has no label"
    if criterion.traits.balanced:
        expect_close(label.sum(1), kept[:, 0].double(), 1e-12, "sum of the effective label")


METHOD_CHECKS = (
    gradient_is_shift,
    fused_is_plain,
    limits_hold,
    torch_is_matched,
    one_hot_is_index,
    soft_is_expectation,
    classes_can_be_renamed,
    rows_can_be_reordered,
    constant_is_as_declared,
    balance_is_as_declared,
    extremes_are_finite,
    masks_are_as_declared,
    offsets_cost_no_digits,
    half_is_near,
    lens_is_consistent,
)
