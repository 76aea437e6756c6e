"""Every loss against an oracle that shares no code with it, and the oracles against central differences."""

import random
from importlib import import_module
from pathlib import Path

import papers
import pytest
import torch

from confide.losses import ACLS, ALL, ACLSHeld, ACLSReleased, CrossEntropy, LabelRelaxation, LabelSmoothing, MbLS

TOLERANCE = 1e-12
IGNORED = 7  # an ordinary class number: that its rows are dropped must not depend on its being out of range
ACLS_KNOBS = [
    {"margin": 6.0, "top": 0.1, "rest": 0.01},
    {"margin": 0.0, "top": 0.15, "rest": 0.0},
    {"margin": 2.0, "top": 0.0, "rest": 1.0},
    {"margin": 3.0, "top": 0.7, "rest": 0.3},
]
MBLS_KNOBS = [
    {"margin": m, "strength": s, "over": o} for m, s in [(6.0, 0.1), (0.0, 0.05), (3.0, 1.0)] for o in ("mean", "sum")
]
PAIRS = (
    [(CrossEntropy, papers.cross_entropy, {})]
    + [(LabelSmoothing, papers.label_smoothing, {"smoothing": s}) for s in (0.0, 0.05, 0.4)]
    + [(MbLS, papers.mbls, k) for k in MBLS_KNOBS]
    + [(ACLS, papers.acls, k | {"form": f}) for k in ACLS_KNOBS for f in ("full", "adaptive", "conditional")]
    + [(ACLSHeld, papers.acls_held, k) for k in ACLS_KNOBS]
    + [(ACLSReleased, papers.acls_released, k) for k in ACLS_KNOBS]
    + [(LabelRelaxation, papers.label_relaxation, {"alpha": a}) for a in (0.0, 0.01, 0.1, 0.4)]
)
NAMES = [f"{kind.__name__}({', '.join(f'{k}={v}' for k, v in knobs.items())})" for kind, _, knobs in PAIRS]
every_pair = pytest.mark.parametrize(("kind", "oracle", "knobs"), PAIRS, ids=NAMES)
ways = pytest.mark.parametrize("fused", [False, "auto"], ids=["autograd", "one_pass"])


def batch(classes=10, rows=12, scale=6.0, seed=0):
    """Logits on which every margin of the tests is passed by some classes and not by others, and labels."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, classes, generator=generator, dtype=torch.float64) * scale
    return logits, torch.randint(classes, (rows,), generator=generator)


def tied(classes=5, rows=40, seed=0):
    """Small whole numbers: equal maxima, equal minima, whole rows of equals, and distances equal to a margin."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randint(-4, 5, (rows, classes), generator=generator).double()
    logits[0], logits[1] = 0.0, 4.0
    return logits, torch.randint(classes, (rows,), generator=generator)


def soft(logits, seed=0):
    """Labels with several classes, some exactly 0, and hard ones among them."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.rand(logits.shape, generator=generator, dtype=torch.float64)
    label[:, ::3] = 0.0
    label[::4] = 0.0
    label[::4, 1] = 1.0
    return label / label.sum(1, keepdim=True)


def differentiated(criterion, logits, target, weights=None):
    """Value and gradient; of the weighted sum where the value is one number a row."""
    z = logits.detach().clone().requires_grad_()
    value = criterion(z, target)
    (gradient,) = torch.autograd.grad((value * weights).sum() if weights is not None else value, z)
    return value.detach(), gradient


def close(found, wanted, tolerance=TOLERANCE):
    wanted = torch.as_tensor(wanted, dtype=torch.float64)
    assert found.dtype == torch.float64
    assert found.shape == wanted.shape
    scale = wanted.abs().max().clamp(min=1.0) if wanted.numel() else 1.0
    assert bool(((found - wanted).abs() <= tolerance * scale).all()), (found - wanted).abs().max()


def wanted_rows(oracle, knobs, logits, target, ignored=None):
    values, gradients = papers.over_rows(oracle, logits.tolist(), target.tolist(), ignored=ignored, **knobs)
    return torch.tensor(values, dtype=torch.float64), torch.tensor(gradients, dtype=torch.float64)


def compare(kind, oracle, knobs, fused, logits, target, ignored=None):
    """One number a row, the sum and the mean."""
    options = {"fused": fused} if ignored is None else {"fused": fused, "ignore_index": ignored}
    values, gradients = wanted_rows(oracle, knobs, logits, target, ignored)
    upstream = torch.linspace(-1.0, 2.0, len(values), dtype=torch.float64)
    value, gradient = differentiated(kind(**knobs, reduction="none", **options), logits, target, upstream)
    close(value, values)
    close(gradient, gradients * upstream[:, None])
    value, gradient = differentiated(kind(**knobs, reduction="sum", **options), logits, target)
    close(value, values.sum())
    close(gradient, gradients)
    kept = sum(any(label) if isinstance(label, list) else label != ignored for label in target.tolist())
    value, gradient = differentiated(kind(**knobs, **options), logits, target)
    close(value, values.sum() / kept)
    close(gradient, gradients / kept)


@ways
@every_pair
def test_hard_labels(kind, oracle, knobs, fused):
    compare(kind, oracle, knobs, fused, *batch())


@ways
@every_pair
def test_two_classes(kind, oracle, knobs, fused):
    compare(kind, oracle, knobs, fused, *batch(classes=2, rows=8, seed=1))


@ways
@every_pair
def test_ties(kind, oracle, knobs, fused):
    compare(kind, oracle, knobs, fused, *tied())


@ways
@every_pair
def test_soft_labels(kind, oracle, knobs, fused):
    logits, _ = batch(seed=2)
    compare(kind, oracle, knobs, fused, logits, soft(logits))


@ways
@every_pair
def test_ignored_rows(kind, oracle, knobs, fused):
    logits, target = batch(seed=3)
    target[1::3] = IGNORED
    compare(kind, oracle, knobs, fused, logits, target, ignored=IGNORED)
    label = soft(logits)
    label[1::3] = 0.0
    compare(kind, oracle, knobs, fused, logits, label)


@ways
@every_pair
def test_large_logits(kind, oracle, knobs, fused):
    compare(kind, oracle, knobs, fused, *batch(scale=300.0, rows=6, seed=4))


@ways
@every_pair
def test_class_weights(kind, oracle, knobs, fused):
    logits, target = batch(seed=5)
    weight = torch.linspace(0.0, 2.0, 10, dtype=torch.float64)
    rows = weight[target]
    values, gradients = wanted_rows(oracle, knobs, logits, target)
    value, gradient = differentiated(kind(**knobs, weight=weight, fused=fused), logits, target)
    close(value, (values * rows).sum() / rows.sum())
    close(gradient, gradients * rows[:, None] / rows.sum())


@ways
@every_pair
@pytest.mark.parametrize("dim", [1, -1])
def test_dense(kind, oracle, knobs, fused, dim):
    flat, target = batch(rows=12, seed=6)
    values, gradients = wanted_rows(oracle, knobs, flat, target)
    logits = flat.reshape(2, 3, 2, 10).movedim(-1, dim)
    value, gradient = differentiated(kind(**knobs, dim=dim, fused=fused), logits, target.reshape(2, 3, 2))
    close(value, values.mean())
    close(gradient.movedim(dim, -1).reshape(12, 10), gradients / 12)


@ways
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.4])
def test_label_relaxation_close_to_its_border(alpha, fused):
    """The true class has a little more or less than 1 - alpha: nothing at all, or nearly nothing."""
    p = 1.0 - alpha + torch.tensor([s * 10.0**-e for e in (2, 3, 4, 6) for s in (-1, 1)], dtype=torch.float64) * alpha
    logits = torch.stack((0.3 * (1.0 - p), p, 0.7 * (1.0 - p)), 1).log()
    target = torch.ones(len(p), dtype=torch.long)
    compare(LabelRelaxation, papers.label_relaxation, {"alpha": alpha}, fused, logits, target)


def test_every_loss_has_an_oracle():
    tables = [import_module(file.stem).PAIRS for file in Path(__file__).parent.glob("test_oracles*.py")]
    assert {kind for table in tables for kind, *_ in table} == set(ALL)


# The oracles against themselves.

FUNCTIONS = [(oracle, knobs) for kind, oracle, knobs in PAIRS if kind not in (ACLSHeld, ACLSReleased)]


def differences(function, z, step=1e-5):
    """Central differences."""
    result = []
    for j in range(len(z)):
        above, below = (function([x + s * (i == j) for i, x in enumerate(z)]) for s in (step, -step))
        result.append((above - below) / (2 * step))
    return result


@pytest.mark.parametrize(
    ("oracle", "knobs"), FUNCTIONS, ids=[n for n, p in zip(NAMES, PAIRS, strict=True) if p[1:] in FUNCTIONS]
)
def test_oracle_gradient_is_that_of_its_value(oracle, knobs):
    logits, target = batch(rows=4, seed=8)
    for z, y in zip(logits.tolist(), target.tolist(), strict=True):
        _, gradient = oracle(z, y, **knobs)
        assert differences(lambda z, y=y: oracle(z, y, **knobs)[0], z) == pytest.approx(gradient, abs=1e-7, rel=1e-7)


@pytest.mark.parametrize("knobs", ACLS_KNOBS)
def test_held_gradient_is_that_of_the_value_with_both_ends_held(knobs):
    """Eq. 12 is what differences give only if minimum and maximum stay where they were."""
    margin, top, rest = knobs["margin"], knobs["top"], knobs["rest"]
    logits, target = batch(rows=4, seed=9)
    for still, y in zip(logits.tolist(), target.tolist(), strict=True):
        high, small, large = papers.highest(still), min(still), max(still)

        def value(z, y=y, high=high, small=small, large=large):
            total = papers.cross_entropy(z, y)[0] + top / 2 * max(0.0, z[high] - small - margin) ** 2
            others = [max(0.0, large - z[j] - margin) ** 2 for j in range(len(z)) if j != high]
            return total + rest / 2 * sum(others)

        found, gradient = papers.acls_held(still, y, **knobs)
        assert value(still) == pytest.approx(found, rel=1e-14)
        assert differences(value, still) == pytest.approx(gradient, abs=1e-7, rel=1e-7)


@pytest.mark.parametrize("knobs", ACLS_KNOBS)
def test_released_gradient_is_that_of_the_value_with_the_maximum_held(knobs):
    margin, top, rest = knobs["margin"], knobs["top"], knobs["rest"]
    logits, target = batch(rows=4, seed=10)
    for still, y in zip(logits.tolist(), target.tolist(), strict=True):
        high, large = papers.highest(still), max(still)

        def value(z, y=y, high=high, large=large):
            total = papers.cross_entropy(z, y)[0] + top * max(0.0, z[high] - margin) ** 2
            others = [max(0.0, large - z[j] - margin) ** 2 for j in range(len(z)) if j != high]
            return total + rest / (len(z) - 1) * sum(others)

        found, gradient = papers.acls_released(still, y, **knobs)
        assert value(still) == pytest.approx(found, rel=1e-14)
        assert differences(value, still) == pytest.approx(gradient, abs=1e-6, rel=1e-7)


def divergence(p, log_q):
    return sum(x * (torch.tensor(x).double().log().item() - lq) for x, lq in zip(p, log_q, strict=True) if x > 0)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.4])
def test_label_relaxation_is_the_smallest_divergence_from_the_credal_set(alpha):
    """Eq. 4: no label of the set is nearer than Eq. 6 says, and some random ones come close."""
    draw = random.Random(0)
    for z, y in [([2.0, 0.0, -1.0], 0), ([1.0, 1.5, 0.5], 0), ([0.3, 0.2, 4.0], 1)]:
        value, _ = papers.label_relaxation(z, y, alpha)
        log_q, nearest = papers.log_softmax(z), float("inf")
        for _ in range(3000):
            spread, part = alpha * draw.random() ** 0.2, draw.random()
            label = [spread * part, spread * (1.0 - part)]
            label.insert(y, 1.0 - spread)
            nearest = min(nearest, divergence(label, log_q))
        assert value - 1e-12 <= nearest <= value + 0.01
