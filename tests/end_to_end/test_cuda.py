"""On a GPU: the CPU's numbers, no hidden synchronisation, the memory of the gradient alone. Needs one to run."""

from functools import partial

import pytest
import torch

import confide
from confide.core.knobs import knobs_of
from confide.losses import ALL
from confide.testing.samples import batch, expect_close, run, side_of, soft

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
every_loss = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
SHAPE = (3, 5, 40, 50)


def moved(side):
    return {name: tensor.cuda() for name, tensor in side.items()}


def expect_same_as_on_the_cpu(make, z, y, tolerance, **settings):
    """Compiled on the GPU against plain autograd on the CPU, in float64, of the same logits."""
    exact = run(make(fused=False), z.double(), y)
    criterion = make(fused=True, **settings).cuda()
    side = moved(side_of(criterion, z))
    logits = z.cuda().requires_grad_()
    value = criterion(logits, y.cuda(), **side)
    value.backward()
    assert logits.grad.dtype == z.dtype
    expect_close(value.detach().cpu().double(), exact[0], tolerance, "value")
    scale = y.numel()  # of a mean
    expect_close(logits.grad.cpu().double() * scale, exact[1] * scale, tolerance, "gradient")


@every_loss
def test_same_numbers_as_on_the_cpu(kind):
    z, y = batch(SHAPE, torch.float32)
    y[0, :7] = -100
    make = partial(kind.example, **({"sample": y.numel()} if "sample" in knobs_of(kind) else {}))  # nothing is drawn
    expect_same_as_on_the_cpu(make, z, y, 2e-5)
    z, y = batch((64, 5), torch.float32)
    if not kind.example().traits.spatial:
        expect_same_as_on_the_cpu(make, z, y, 2e-5)


@pytest.mark.parametrize("kind", [confide.MbLS, confide.ACLS, confide.LabelRelaxation], ids=lambda kind: kind.__name__)
def test_soft_targets_and_bfloat16(kind):
    z, y = batch(SHAPE, torch.float32)
    expect_same_as_on_the_cpu(kind, z, soft(y, 5), 2e-5)
    expect_same_as_on_the_cpu(kind, z.bfloat16(), y, 2e-2)


@every_loss
def test_no_hidden_synchronisation(kind):
    z, y = (tensor.cuda() for tensor in batch(SHAPE, torch.float32))
    criterion = kind.example().cuda()
    side = moved(side_of(criterion, z))
    z.requires_grad_()
    for _ in range(12):  # the first checks labels, the eleventh compiles
        criterion(z, y, **side).backward()
    torch.cuda.set_sync_debug_mode("error")
    try:
        criterion(z, y, **side).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert z.grad.isfinite().all()


@pytest.mark.parametrize("kind", [confide.CrossEntropy, confide.MbLS, confide.ACLS], ids=lambda kind: kind.__name__)
def test_one_step_allocates_the_gradient_and_little_else(kind):
    z, y = (tensor.cuda() for tensor in batch((8, 21, 256, 256), torch.float32))
    z.requires_grad_()
    criterion = kind(fused=True).cuda()
    criterion(z, y).backward()
    z.grad = None
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    criterion(z, y).backward()
    assert (torch.cuda.max_memory_allocated() - before) / (z.numel() * 4) < 1.5


def test_grad_scaler_and_autocast():
    model = torch.nn.Linear(20, 5).cuda()
    scaler = torch.amp.GradScaler("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(64, 20, device="cuda"), torch.randint(5, (64,), device="cuda")
    criterion, values = confide.MbLS(), []
    for _ in range(30):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        values.append(loss.item())
    assert values[-1] < values[0]
