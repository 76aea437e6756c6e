"""Eq. 12 of the ACLS paper drifts: its push does not sum to zero, it is no function's gradient, training runs away.

It depends on differences of logits only, so nothing in it can tell logits from the same logits plus a constant. Where
the gradients of a row do not sum to zero they move that constant all the same, and nothing brings it back.
"""

import math

import pytest
import torch
from torch import nn

from confide.losses import ACLS, ALL, ACLSHeld, ACLSReleased
from confide.testing.samples import run

MARGIN, TOP, REST = 6.0, 0.1, 0.01


def logits(rows=16, classes=10, scale=8.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(rows, classes, generator=generator, dtype=torch.float64) * scale
    return z, torch.randint(classes, (rows,), generator=generator)


def gradient(criterion, z, y):
    z = z.clone().requires_grad_()
    return torch.autograd.grad(criterion(z, y), z)[0]


def make(kind, fused=False):
    return kind(margin=MARGIN, top=TOP, rest=REST, reduction="sum", fused=fused)


# The push on all logits of a row together.


@pytest.mark.parametrize("fused", [False, "auto"])
def test_held_pushes_all_logits_together(fused):
    z, y = logits()
    found = gradient(make(ACLSHeld, fused), z, y).sum(1)
    for row, total in zip(z.tolist(), found.tolist(), strict=True):
        winner = row.index(max(row))
        down = TOP * max(0.0, max(row) - min(row) - MARGIN)
        up = sum(REST * max(0.0, max(row) - x - MARGIN) for j, x in enumerate(row) if j != winner)
        assert total == pytest.approx(down - up, abs=1e-12)
    assert bool((found.abs() > 0.1).any())


@pytest.mark.parametrize("fused", [False, "auto"])
@pytest.mark.parametrize("form", ["full", "adaptive", "conditional"])
def test_acls_pushes_nothing_together(form, fused):
    z, y = logits()
    criterion = ACLS(margin=MARGIN, top=TOP, rest=REST, form=form, reduction="sum", fused=fused)
    assert gradient(criterion, z, y).sum(1).abs().max() <= 1e-12


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_cards_tell_which_losses_do(kind):
    z, y = logits()
    if kind.card.spatial:
        z, y = z.unflatten(0, (4, 4)).movedim(-1, 1), y.unflatten(0, (4, 4))
    largest = run(kind.example(reduction="sum", fused=False), z, y)[1].sum(1).abs().max()
    assert (largest <= 1e-12) == kind.card.balanced


# The gradient of a function with second derivatives has a symmetric Jacobian.


def jacobian(criterion, z, y):
    """Central differences of the gradient of one row; exact to rounding where it is linear, fine elsewhere."""
    step = 1e-5
    moves = torch.eye(len(z), dtype=z.dtype) * step
    above, below = (gradient(criterion, z + move, y.expand(len(z))) for move in (moves, -moves))
    return (above - below) / (2 * step)


def asymmetry(kind):
    z, y = logits(rows=8)
    found = [jacobian(make(kind), row, label) for row, label in zip(z, y, strict=True)]
    return max(float((j - j.T).abs().max()) for j in found)


def test_held_is_the_gradient_of_no_function():
    # By Eq. 12 the predicted class feels the lowest one by -TOP, which feels the predicted one by -REST.
    assert asymmetry(ACLSHeld) == pytest.approx(TOP - REST, abs=1e-6)


def test_released_is_the_gradient_of_no_function_either():
    # The others feel the predicted class, which feels none of them.
    assert asymmetry(ACLSReleased) == pytest.approx(2 * REST / 9, abs=1e-6)


def test_acls_is_the_gradient_of_one():
    assert asymmetry(ACLS) <= 1e-8


# Training. Ten clusters of ten points, full batches, plain SGD, and the defaults of both classes: margin 6, top 0.1
# and rest 0.01, the paper's for CIFAR-10. Rate and number of steps are what is needed to see it within a second: for
# five of six seeds of the network all logits are infinite before step 700, for the sixth the mean is at -20 by then and
# nearly doubles every hundred steps. Another rate changes the number of steps (half of it needs about twice as many).


def clusters(classes=10, features=10, each=10):
    generator = torch.Generator().manual_seed(0)
    centres = 2 * torch.randn(classes, features, generator=generator, dtype=torch.float64)
    y = torch.arange(classes).repeat(each)
    return centres[y] + 0.3 * torch.randn(len(y), features, generator=generator, dtype=torch.float64), y


def mean_logits(model, criterion, steps, rate):
    """Train, and return the mean logit before every step."""
    x, y = clusters()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    history = []
    for _ in range(steps):
        z = model(x)
        history.append(z.mean().item())
        optimizer.zero_grad()
        criterion(z, y).backward()
        optimizer.step()
    return history


def linear():
    torch.manual_seed(0)
    return nn.Linear(10, 10, dtype=torch.float64)


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 32, dtype=torch.float64), nn.ReLU(), nn.Linear(32, 10, dtype=torch.float64))


def test_linear_model_drifts_steadily():
    """A linear layer has nothing to amplify the push: the mean logit leaves at a near constant pace, without end."""
    held = mean_logits(linear(), ACLSHeld(fused=False), steps=200, rate=0.5)
    early, late = held[100] - held[50], held[199] - held[149]
    assert held[199] - held[0] < -3.0
    assert 0.5 < late / early < 1.0
    still = mean_logits(linear(), ACLS(fused=False), steps=200, rate=0.5)
    assert max(still) - min(still) <= 1e-12  # the weights' mean over the classes never moves


def test_network_runs_away():
    """Below a linear layer the features grow with the push, and the push with the features: it ends in infinity."""
    held = mean_logits(mlp(), ACLSHeld(fused=False), steps=600, rate=0.1)
    assert 2.0 < held[300] / held[200] < 4.0  # it more than doubles in a hundred steps
    assert not math.isfinite(held[-1])
    still = mean_logits(mlp(), ACLS(fused=False), steps=600, rate=0.1)
    assert max(map(abs, still)) < 0.1
