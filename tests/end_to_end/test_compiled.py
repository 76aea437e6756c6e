"""The compiled path: the eager numbers, few compilations, no silent fallback, no extra memory."""

import sys
import warnings
from functools import partial
from itertools import product

import pytest
import torch
from torch._dynamo.utils import counters
from torch.profiler import ProfilerActivity, profile

import confide
from confide.core import compiler
from confide.core.errors import CompilerWarning
from confide.core.knobs import knobs_of
from confide.core.simplex import cross_entropy
from confide.losses import ALL, Loss
from confide.losses.card import Card
from confide.testing.samples import batch, call, describe, expect_close, run, soft, variants


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Each test starts without compiled functions, and dynamo's silent fallback to eager becomes an error."""
    monkeypatch.setattr(compiler, "_compiled", {})
    monkeypatch.setattr(compiler._Compiled, "broken", False)
    monkeypatch.setattr(compiler._Compiled, "told", set())
    torch._dynamo.reset()
    counters.clear()
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        yield


def compilations():
    return counters["stats"]["unique_graphs"]


def expect_same_as_eager(make, z, y):
    for found, wanted in zip(run(make(fused=True), z, y), run(make(fused=False), z, y), strict=True):
        expect_close(found.double(), wanted.double(), 1e-5, f"{make} compiled")


def forty_rows(kind):
    """For losses that look at neighbouring pixels they are the pixels of four images."""
    return batch((4, 12, 2, 5) if kind.card.spatial else (40, 12), torch.float32)


def scheduled(kind, share):
    """Every knob that is a fraction or a strength, at a share of its default."""
    return {name: k.default * share for name, k in knobs_of(kind).items() if isinstance(k.default, float)}


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_rows(kind):
    z, y = forty_rows(kind)
    y[3:9] = -100
    z[min(4, len(z) - 1)] = float("nan")
    expect_same_as_eager(kind.example, z, y)
    assert compilations() == 1


@pytest.mark.parametrize("kind", [confide.MbLS, confide.LabelRelaxation], ids=lambda kind: kind.__name__)
def test_dense_and_soft(kind):
    z, y = batch((3, 5, 8, 9), torch.float32)
    expect_same_as_eager(kind, z, y)
    expect_same_as_eager(kind, z, soft(y, 5).float())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half(dtype):
    z, y = batch((40, 12), dtype)
    value, gradient = run(confide.MbLS(fused=True), z, y)
    exact = run(confide.MbLS(fused=False), z.double(), y)
    assert gradient.dtype == dtype
    expect_close(value.double(), exact[0], 1e-5, "value")
    expect_close(gradient.double() * 40, exact[1] * 40, 1e-2, "gradient")


@pytest.mark.parametrize("kind", [confide.MbLS, confide.ACLS, confide.LabelRelaxation], ids=lambda kind: kind.__name__)
def test_fifty_batch_sizes_compile_at_most_twice(kind):
    criterion = kind(fused=True)
    for n in range(1, 51):
        same = batch((n, 12), torch.float32, seed=n)
        expect_close(run(criterion, *same)[1], run(kind(fused=False), *same)[1], 1e-5, f"batch of {n}")
    assert compilations() <= 2


def test_a_scheduled_knob_compiles_at_most_twice():
    criterion = confide.MbLS(fused=True)
    z, y = batch((40, 12), torch.float32)
    for margin in range(1, 31):
        criterion.margin = margin / 2
        expect_close(run(criterion, z, y)[1], run(confide.MbLS(margin=margin / 2), z, y)[1], 1e-5, f"{margin=}")
    assert compilations() <= 2


@pytest.mark.parametrize("kind", [kind for kind in ALL if scheduled(kind, 1)], ids=lambda kind: kind.__name__)
def test_scheduled_knobs_are_followed(kind):
    z, y = forty_rows(kind)
    for share in (1.0, 0.9, 0.8, 0.7):
        expect_same_as_eager(partial(kind.example, **scheduled(kind, share)), z, y)


def test_every_formula_of_a_method_is_compiled(monkeypatch):
    original = torch.compile
    monkeypatch.setattr(torch, "compile", lambda run, options: original(run, backend="eager"))  # the count is dynamo's
    z, y = batch((2, 5, 3, 4), torch.float32)
    for distance, on, over, prior in product(("l1", "l2"), ("logits", "probs"), ("mean", "sum"), ("mean", "max")):
        expect_same_as_eager(partial(confide.NACL, distance=distance, on=on, over=over, prior=prior), z, y)
    assert compilations() == 16


@pytest.mark.parametrize("kind", [confide.Focal, confide.DualFocal], ids=lambda kind: kind.__name__)
def test_a_scheduled_power_is_followed(kind):
    """The compiler may fix an exponent at what it was in the second compilation, without a guard."""
    criterion = kind(fused=True)
    z, y = batch((40, 12), torch.float32)
    for gamma in (3.0, 0.5, 0.9, 2.0, 5.0):
        criterion.gamma = gamma
        found, wanted = run(criterion, z / 6, y), run(kind(gamma=gamma, fused=False), z / 6, y)
        expect_close(found[0], wanted[0], 1e-5, f"value at {gamma=}")
        expect_close(found[1], wanted[1], 1e-6, f"gradient at {gamma=}")
    assert compilations() <= 2


def test_every_method_keeps_its_own_compiled_function():
    criteria = [next(variants(kind))(fused=True) for kind in ALL]
    for _ in range(3):
        for criterion in criteria:
            z, y = forty_rows(type(criterion))
            call(criterion, z.requires_grad_(), y).backward()
    assert compilations() == len(ALL)


def test_train_and_eval_share_a_compilation():
    criterion = confide.MbLS(fused=True)
    z, y = batch((40, 12), torch.float32)
    for mode in (True, False, True):
        criterion.train(mode)
        run(criterion, z, y)
    assert compilations() == 1


def test_loops_compile_and_single_calls_do_not():
    criterion = confide.MbLS()
    z, y = batch((128, 12), torch.float32)
    for _ in range(compiler.LOOP):
        run(criterion, z, y)
    assert compilations() == 0
    run(criterion, z, y)
    assert compilations() == 1


def test_without_a_compiler_there_is_one_warning_and_the_same_numbers(monkeypatch):
    def refuse(*args, **kwargs):
        def call(*args):
            raise RuntimeError("no C++ compiler found")

        return call

    monkeypatch.setattr(torch, "compile", refuse)
    z, y = batch((40, 12), torch.float32)
    with pytest.warns(CompilerWarning, match=r"no C\+\+ compiler found.*eager formulas"):
        found = run(confide.MbLS(fused=True), z, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = run(confide.ACLS(fused=True), z, y)
    assert torch.equal(found[1], run(confide.MbLS(), z, y)[1])
    assert torch.equal(again[1], run(confide.ACLS(), z, y)[1])


STRENGTH = 1.0


class Outside(Loss):
    """A loss of somebody else's, with a setting that is no knob."""

    card = Card(title="", cite="", group="", formula="", summary="", differs="")
    limits = ()

    def loss(self, z, y):
        return cross_entropy(z, y) + STRENGTH * z.square().sum(1)

    def shift(self, z, y):
        return -2 * STRENGTH * z


def test_a_global_of_a_loss_from_outside_is_followed(monkeypatch):
    z, y = batch((40, 12), torch.float32)
    for strength in (1.0, 2.0, 3.0):
        monkeypatch.setattr(sys.modules[__name__], "STRENGTH", strength)
        expect_same_as_eager(Outside, z, y)


def test_what_fails_for_one_method_is_tried_for_others(monkeypatch):
    original = torch.compile

    def refuse(run, **options):
        def call(*args):
            raise RuntimeError("no code for this one")

        return call if "MbLS" in run.__name__ else original(run, **options)

    monkeypatch.setattr(torch, "compile", refuse)
    z, y = batch((40, 12), torch.float32)
    with pytest.warns(CompilerWarning, match="no code for this one"):
        run(confide.MbLS(fused=True), z, y)
    run(confide.ACLS(fused=True), z, y)
    assert [entry.gave_up for entry in compiler._compiled.values()] == [True, False]


def peak(criterion, z, y):
    """Peak of the memory that a step allocates, gradient included, in sizes of the logits."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        criterion(z, y).backward()
    held = highest = 0
    for event in recorded.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            highest = max(highest, held)
    return highest / (z.numel() * z.element_size())


@pytest.mark.parametrize("shape", [(256, 1000), (4, 21, 256, 256)])
def test_one_step_allocates_the_gradient_and_little_else(shape):
    z, y = batch(shape, torch.float32)
    z.requires_grad_()
    criterion = confide.MbLS(fused=True)
    criterion(z, y).backward()
    z.grad = None
    assert peak(criterion, z, y) < 1.1
    z.grad = None
    assert peak(torch.nn.CrossEntropyLoss(), z, y) > 2.9  # the measure itself works


@pytest.mark.parametrize("shape", [(40000, 8), (3, 4, 160, 170), (70, 4, 30, 40)])
@pytest.mark.parametrize(("make", "weighted"), [(confide.MbLS, False), (confide.ACLS, True)], ids=["MbLS", "ACLS"])
def test_block_by_block_is_the_whole(shape, make, weighted):
    z, y = batch(shape, torch.float64)
    y[0] = -100
    weight = torch.linspace(0.5, 2, shape[1], dtype=torch.float64) if weighted else None
    for target, normalizer in ((y, None), (y, 1234.0), (soft(y.clamp(min=0), shape[1]), None)):
        blocks, whole = (
            run(make(fused=fused, weight=weight, validate="off"), z, target, normalizer=normalizer)
            for fused in ("auto", False)
        )
        expect_close(blocks[0], whole[0], 1e-12, "value")
        expect_close(blocks[1] * 1e3, whole[1] * 1e3, 1e-12, "gradient")


def test_names_in_reports():
    assert describe(confide.MbLS) == "MbLS(margin=10.0, strength=0.1, over='mean')"
