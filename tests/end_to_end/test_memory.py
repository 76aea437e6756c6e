"""What a step of the dense losses allocates, gradient included, stays within three times the logits.

The shapes are small ones of the kind of (1, 21, 512, 512) and (1, 4, 128, 128, 128). Without a compiler that holds for
all losses that work row by row, apart from CPC; losses of whole batches need the compiler.
"""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from confide.core import compiler
from confide.losses import ALL, CPC, DCA, MDCA, NACL, SVLS, MbLS
from confide.testing.samples import batch

SHAPES = ((1, 21, 320, 320), (1, 4, 80, 80, 80))
BLOCKWISE = [kind for kind in ALL if not kind.card.coupled and kind is not CPC]
PRIORS = ("gaussian", "max", "median", "mode")


def peak(criterion, z, y):
    """In sizes of the logits."""
    z = z.clone().requires_grad_()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        criterion(z, y).backward()
    held = highest = 0
    for event in recorded.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            highest = max(highest, held)
    return highest / (z.numel() * z.element_size())


@pytest.mark.parametrize("shape", SHAPES, ids=["plane", "volume"])
@pytest.mark.parametrize(
    "criterion",
    [*(kind() for kind in BLOCKWISE), *(NACL(prior=p) for p in PRIORS), NACL(kernel_size=5), SVLS(kernel_size=5)],
    ids=repr,
)
def test_without_a_compiler(criterion, shape, monkeypatch):
    monkeypatch.setattr("confide.losses.loss.pays", lambda *_: False)
    found = peak(criterion, *batch(shape, torch.float32))
    assert 1.0 <= found < 3.0, f"{found:.2f} times the logits"


@pytest.mark.filterwarnings("ignore::confide.core.errors.CompilerWarning")
def test_where_the_compiler_is_broken(monkeypatch):
    monkeypatch.setattr(compiler, "_compiled", {})
    monkeypatch.setattr(compiler._Compiled, "told", set())
    monkeypatch.setattr(torch, "compile", lambda *_, **__: None)  # calling that is an error
    criterion, (z, y) = MbLS(), batch(SHAPES[1], torch.float32)
    criterion(z.clone().requires_grad_(), y).backward()
    assert all(entry.gave_up for entry in compiler._compiled.values())
    assert 1.0 <= peak(criterion, z, y) < 3.0


@pytest.mark.parametrize("kind", [MDCA, DCA], ids=lambda kind: kind.__name__)
def test_statistics_of_a_batch_with_a_compiler(kind):
    z, y = batch(SHAPES[1], torch.float32)
    criterion = kind(fused=True)
    criterion(z.clone().requires_grad_(), y).backward()
    found = peak(criterion, z, y)
    assert 1.0 <= found < 3.0, f"{found:.2f} times the logits"
