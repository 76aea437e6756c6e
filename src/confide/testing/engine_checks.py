"""Checks of what every loss shares: layouts, ignored rows, reductions, accumulation, compilation, refusals."""

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor

from confide.core.errors import InputError, KnobError, SecondDerivativeError
from confide.core.knobs import knobs_of
from confide.testing import samples
from confide.testing.samples import Make, batch, call, expect_close, expect_error, part_of, run, sample, side_of


def dense_is_flattened(make: Make) -> None:
    """Any number of trailing axes, any strides, any class axis, one row alone: the same numbers."""
    z, y = batch((2, 5, 3, 4))
    value, gradient = run(make(), z, y)
    layouts = {
        "class axis last": (z.movedim(1, -1).contiguous(), -1),
        "class axis first": (z.movedim(1, 0).contiguous(), 0),
        "class axis 2": (z.movedim(1, 2).contiguous(), 2),
        "channels_last": (z.contiguous(memory_format=torch.channels_last), 1),
        "every second column": (torch.stack((z, z), -1).flatten(-2)[..., ::2], 1),
        "expanded": (z.movedim(1, -1).movedim(-1, 1), 1),
    }
    for name, (view, dim) in layouts.items():
        found = run(make(dim=dim), view, y)
        expect_close(found[0], value, 1e-12, name)
        expect_close(found[1], gradient.movedim(1, dim), 1e-12, f"gradient, {name}")
    if make().traits.spatial:
        expect_error(InputError, "no axis along which to look", lambda: call(make(), z[..., 0, 0], y[..., 0, 0]))
        return
    side = {name: tensor.reshape(-1) for name, tensor in side_of(make(), z).items()}
    flat = run(make(), z.movedim(1, -1).reshape(-1, 5), y.reshape(-1), **side)
    expect_close(flat[0], value, 1e-12, "flattened")
    one = call(make(), z[0, :, 0, 0], y[0, 0, 0])
    expect_close(one, call(make(), z[:1, :, :1, :1], y[:1, :1, :1]), 1e-12, "unbatched")


def rows_add_up(make: Make) -> None:
    """reduction="none" has the target's shape, "sum" adds it up, "mean" divides by the kept weight."""
    z, y = batch((2, 5, 3, 4))
    y[0, 0, 0] = -100
    weight = torch.linspace(0.5, 2, 5, dtype=torch.float64)
    total, mean = (call(make(reduction=r, weight=weight), z, y) for r in ("sum", "mean"))
    expect_close(mean, total / weight[y[y != -100]].sum(), 1e-12, "mean")
    if make().coupled:
        expect_error(KnobError, "reduction='none' is not possible", lambda: make(reduction="none"))
        return
    rows = call(make(reduction="none", weight=weight), z, y)
    assert rows.shape == y.shape and rows[0, 0, 0] == 0
    expect_close(total, rows.sum(), 1e-12, "sum")
    plain = call(make(reduction="none"), z, y)
    expect_close(rows[y != -100], (plain * weight[y.clamp(min=0)])[y != -100], 1e-12, "weighted rows")


def ignored_is_removed(make: Make) -> None:
    """Ignored rows, whatever they hold, change neither value nor gradient, and get a gradient of exactly 0."""
    for ignore, dtype in ((-100, torch.int64), (255, torch.uint8), (-1, torch.int32), (5, torch.uint8)):
        z, y = batch((4, 5, 6))
        out = torch.rand(y.shape, generator=torch.Generator().manual_seed(1)) < 0.4
        y = y.masked_fill(out, ignore).to(dtype)
        clean = _without(make, z, y, out)
        for junk in (0.0, float("nan"), float("inf"), -float("inf")):
            dirty = torch.where(out.unsqueeze(1), junk, z)
            for mode in ("auto", False):
                value, gradient = run(make(ignore_index=ignore, fused=mode), dirty, y)
                expect_close(value, clean[0], 1e-6, f"value with {junk} in ignored rows, ignore_index={ignore}")
                rows = gradient.movedim(1, -1)
                assert not rows[out].any(), f"gradient is not exactly 0 in ignored rows that hold {junk}"
                expect_close(rows[~out], clean[1], 1e-6, f"gradient with {junk} in ignored rows")


def _without(make: Make, z: Tensor, y: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Value and gradient without some of the rows. Pixels cannot leave their image: they hold zeros instead."""
    if make().traits.spatial:
        value, gradient = run(make(ignore_index=int(y[out][0])), torch.where(out.unsqueeze(1), 0.0, z), y)
        return value, gradient.movedim(1, -1)[~out]
    return run(make(), z.movedim(1, -1)[~out], y[~out].long(), **part_of(side_of(make(), z), ~out))


def nothing_kept_is_zero(make: Make) -> None:
    """All rows ignored, or no rows at all: the loss is 0 with zero gradients."""
    z, y = sample(make)
    zero_weight = torch.zeros(5, dtype=torch.float64)
    cases = (
        (z, torch.full_like(y, -100), None), (z[:0], y[:0], None), (z, torch.zeros_like(z), None), (z, y, zero_weight)
    )  # fmt: skip
    for logits, target, weight in cases:
        for reduction in ("mean", "sum"):
            for mode in ("auto", False):
                value, gradient = run(make(reduction=reduction, fused=mode, weight=weight), logits, target)
                assert value == 0 and not gradient.any(), f"{value} with nothing kept, fused={mode}"


def any_integer_target(make: Make) -> None:
    """Every integer dtype of the target means the same."""
    z, y = sample(make)
    wanted = call(make(), z, y)
    for dtype in (torch.int32, torch.int16, torch.int8, torch.uint8):
        assert torch.equal(call(make(), z, y.to(dtype)), wanted), f"a target in {dtype} changes the loss"


def accumulation_is_one_batch(make: Make) -> None:
    """With `normalizer`, micro-batches with uneven numbers of labels add up to the gradient of the whole."""
    z, y = batch((8, 5, 3))
    y[2:5] = -100
    y[0, :2] = -100
    weight = torch.linspace(0.5, 2, 5, dtype=torch.float64)
    value, gradient = run(make(weight=weight), z, y)
    total = weight[y[y != -100]].sum()
    for normalizer in (total, float(total)):
        parts = [run(make(weight=weight), z[i : i + 1], y[i : i + 1], normalizer=normalizer) for i in range(8)]
        expect_close(sum(p[0] for p in parts), value, 1e-12, "accumulated loss")  # type: ignore[arg-type]
        expect_close(torch.cat([p[1] for p in parts]), gradient, 1e-12, "accumulated gradient")
    expect_error(InputError, "normalizer replaces", lambda: call(make(reduction="sum"), z, y, normalizer=3))
    expect_error(InputError, "normalizer must be one", lambda: call(make(), z, y, normalizer=torch.ones(2)))


def backward_is_autograds(make: Make) -> None:
    """Upstream factors, a retained graph and second derivatives behave as with any other function."""
    z, y = sample(make)
    z.requires_grad_()
    criterion = make()
    value = call(criterion, z, y)
    first, second = (torch.autograd.grad(value * scale, z, retain_graph=True)[0] for scale in (1.0, -3.0))
    expect_close(second, -3 * first, 1e-12, "gradient of a scaled loss through a retained graph")
    expect_error(
        SecondDerivativeError, "fused=False", lambda: torch.autograd.grad(call(criterion, z, y), z, create_graph=True)
    )
    if not criterion.coupled:
        rows = call(make(reduction="none"), z, y)
        one_each = torch.eye(rows.numel(), dtype=z.dtype).reshape(-1, *rows.shape)
        (each,) = torch.autograd.grad(rows, z, one_each, retain_graph=True, is_grads_batched=True)
        expect_close(each.sum(0), torch.autograd.grad(rows.sum(), z)[0], 1e-12, "a batch of gradients")
    (gradient,) = torch.autograd.grad(call(make(fused=False), z, y), z, create_graph=True)
    (curvature,) = torch.autograd.grad(gradient.square().sum(), z)
    assert curvature.isfinite().all()


def compiles_whole(make: Make) -> None:
    """Inside a user's torch.compile(fullgraph=True) the loss is one graph with the same numbers."""
    z, y = batch((2, 5, 7), torch.float32)
    y[0, 0] = -100
    criterion = make()
    torch._dynamo.reset()
    compiled = torch.compile(criterion, fullgraph=True, backend="aot_eager")
    for found, wanted in zip(run(compiled, z, y), run(criterion, z, y), strict=True):
        expect_close(found, wanted, 1e-5, "inside torch.compile")


def transforms_work(make: Make) -> None:
    """torch.func sees an ordinary function: of each of several batches, or of each row (or image) alone."""
    z, y = (torch.stack(both) for both in zip(sample(make), sample(make, seed=1), strict=True))
    criterion = make(reduction="sum")
    side = {name: torch.stack((tensor, tensor)) for name, tensor in side_of(criterion, z[0]).items()}

    def loss(z: Tensor, y: Tensor, side: dict[str, Tensor]) -> Tensor:
        return call(criterion, z, y, **side)

    found = torch.func.vmap(torch.func.grad(loss))(z, y, side)
    wanted = torch.stack([run(criterion, *each)[1] for each in zip(z, y, strict=True)])
    expect_close(found, wanted, 1e-12, "gradients of several batches by torch.func")
    if not criterion.coupled:
        alone = (z[0], y[0], part_of(side, 0))
        if criterion.traits.spatial:  # an image alone is a batch of one
            alone = (z[0].unsqueeze(1), y[0].unsqueeze(1), {name: x[0].unsqueeze(1) for name, x in side.items()})
        found = torch.func.vmap(torch.func.grad(loss))(*alone).reshape(z[0].shape)
        expect_close(found, wanted[0], 1e-12, "per-row gradients by torch.func")


def state_survives(make: Make) -> None:
    """state_dict, deepcopy and a move of device or dtype keep the loss as it was."""
    z, y = sample(make)
    criterion = make(weight=torch.linspace(0.5, 2, 5, dtype=torch.float64))
    other = make(weight=torch.ones(5, dtype=torch.float64))
    other.load_state_dict(criterion.state_dict())
    wanted = call(criterion, z, y)
    for copied in (other, copy.deepcopy(criterion), criterion.to(torch.float64)):
        assert torch.equal(call(copied, z, y), wanted)
        assert repr(copied) == repr(criterion)


def terms_explain(make: Make) -> None:
    """`terms` adds up, carries no graph, and says how much of the batch the regulariser touches."""
    z, y = batch((2, 5, 3, 4))
    y[0, 0, 0] = -100
    criterion = make()
    side = side_of(criterion, z)
    terms = criterion.terms(z.requires_grad_(), y, **side)
    assert list(terms) == ["loss", "ce", "penalty", "active"]
    assert not any(term.requires_grad for term in terms.values())
    expect_close(terms["loss"], call(criterion, z, y).detach(), 1e-12, "loss")
    expect_close(terms["ce"] + terms["penalty"], terms["loss"], 1e-12, "ce + penalty")
    kept = (y != -100).unsqueeze(1)
    share = ((criterion.smoothing(z, y, **side).C != 0) & kept).sum() / (kept.sum() * 5)
    expect_close(terms["active"], share.to(terms["active"].dtype), 1e-6, "active")


def bad_knobs_are_refused(make: Make) -> None:
    """A setting outside its range, of the wrong kind, or unknown is refused in words that name it."""
    criterion = make()
    for name, k in knobs_of(type(criterion)).items():
        bad: list[Any] = ["no such choice", 3] if k.choices else [k.low - 1, k.high + 1, float("nan"), "10", None]
        for value in bad:
            expect_error(KnobError, f"{name}=", partial(make, **{name: value}))
        expect_error(KnobError, name, partial(setattr, criterion, name, "wrong"))
    expect_error(KnobError, "has no no_such_knob", lambda: make(no_such_knob=1))
    expect_error(KnobError, "reduction='average'", lambda: make(reduction="average"))


def bad_inputs_are_refused(make: Make) -> None:
    """Labels, shapes and logits that cannot be meant are refused with count, range, place and fix."""
    z, y = batch((2, 5, 3, 4))
    high = y.clone()
    high[0, 1, 2] = high[1, 0, 0] = 255
    fix = "target has 2 values outside [0, 5) (e.g. 255 at [0, 1, 2]); did you mean ignore_index=255?"
    expect_error(InputError, fix, lambda: call(make(), z, high))
    broken = z.clone()
    broken[1, 2, 0, 3] = float("nan")
    expect_error(InputError, "NaN in 1 rows that are not ignored, first at [1, 0, 3]", lambda: call(make(), broken, y))
    broken[1, 2, 0, 3] = float("inf")
    expect_error(InputError, "inf in 1 rows that are not ignored, first at [1, 0, 3]", lambda: call(make(), broken, y))
    expect_error(InputError, "look like probabilities", lambda: call(make(), z.softmax(1), y))
    expect_error(InputError, "the class axis seems to be last: pass dim=-1", lambda: call(make(), z.movedim(1, -1), y))
    expect_error(InputError, "target.squeeze(1)", lambda: call(make(), z, y.unsqueeze(1)))
    expect_error(InputError, "target.float()", lambda: call(make(), z, samples.one_hot(y, 5, torch.int64)))
    expect_error(InputError, "target.long()", lambda: call(make(), z, y.float()))
    expect_error(InputError, "no class probabilities", lambda: call(make(), z, samples.soft(y, 5) * 2))
    expect_error(InputError, "weight has 3 numbers for 5 classes", lambda: call(make(weight=torch.ones(3)), z, y))
    expect_error(InputError, "(0, z)", lambda: call(make(), z[:, :1], y))


ENGINE_CHECKS = (
    dense_is_flattened,
    rows_add_up,
    ignored_is_removed,
    nothing_kept_is_zero,
    any_integer_target,
    accumulation_is_one_batch,
    backward_is_autograds,
    compiles_whole,
    transforms_work,
    state_survives,
    terms_explain,
    bad_knobs_are_refused,
    bad_inputs_are_refused,
)
