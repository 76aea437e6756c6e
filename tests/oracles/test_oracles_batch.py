"""The losses that measure a batch as a whole against their oracles: value and gradient of the mean and of the sum."""

import papers_batch
import pytest
import steps
import torch
from test_oracles import IGNORED, batch, close, soft, tied

from confide.core import batch as core_batch
from confide.losses import ACLS, CRL, DCA, MDCA, MMCE, SoftECE
from confide.losses.loss import Loss

SAMPLES = 20


def mmce(rows, labels, weights, strength, weighted, width):
    form = papers_batch.mmce_weighted if weighted else papers_batch.mmce
    return form(rows, labels, weights, strength, width)


PAIRS = (
    [(MDCA, papers_batch.mdca, {"strength": s}) for s in (1.0, 10.0)]
    + [(DCA, papers_batch.dca, {"strength": s}) for s in (1.0, 3.0)]
    + [(MMCE, mmce, {"strength": 2.0, "weighted": w, "width": x}) for w in (False, True) for x in (0.4, 0.05)]
    + [
        (SoftECE, papers_batch.soft_ece, {"strength": s, "bins": b, "temperature": t})
        for s, b, t in [(1.0, 15, 0.01), (2.0, 4, 0.1), (1.0, 1, 1.0)]
    ]
)
RANKED = [
    (CRL, papers_batch.crl, {"strength": s, "confidence": c})
    for s, c in [(1.0, "max"), (2.0, "entropy"), (1.0, "margin")]
] + [
    (ACLS, papers_batch.acls_by_rank, {"margin": m, "top": 0.7, "rest": 0.3, "form": f})
    for m in (0.0, 6.0)
    for f in ("full", "adaptive", "conditional")
]
UNRANKED = [
    (CRL, papers_batch.crl_by_margin, {"strength": 1.5, "confidence": c, "margin": m})
    for c in ("max", "entropy", "margin")
    for m in (6.0, 0.0)
]
PAIRS += RANKED + UNRANKED


def name(pair):
    return f"{pair[0].__name__}({', '.join(f'{k}={v}' for k, v in pair[2].items())}){'@' * (pair in UNRANKED)}"


every_pair = pytest.mark.parametrize("pair", PAIRS, ids=name)
ways = pytest.mark.parametrize("fused", [False, "auto"], ids=["autograd", "one_pass"])


def rows_of(target, classes, weight=None, ignored=None):
    """For every row its label as class probabilities, its weight, and what it adds to the mean's denominator."""
    labels, weights, masses = [], [], []
    for label in target.tolist():
        hard = not isinstance(label, list)
        q = [float(k == label) for k in range(classes)] if hard else label
        q = [0.0] * classes if label == ignored else q
        tilted = [x * (1.0 if weight is None else weight[k].item()) for k, x in enumerate(q)]
        weights.append(sum(tilted))
        masses.append(sum(tilted) if hard else float(any(q)))
        labels.append([x / weights[-1] for x in tilted] if weights[-1] else q)
    return labels, weights, masses


def wanted(oracle, knobs, logits, target, ranks=(), **options):
    """Cross-entropy and what the oracle adds to it, as a sum over the rows; and what the mean divides that by."""
    labels, weights, masses = rows_of(target, logits.shape[1], **options)

    def total(rows):
        fits = papers_batch.cross_entropies(rows, labels)
        fit = sum(w * x for w, x in zip(weights, fits, strict=True))
        return fit + sum(weights) * oracle(rows, labels, weights, *ranks, **knobs)

    value, gradient = steps.differentiated(total, logits.tolist())
    return value, torch.tensor(gradient, dtype=torch.float64), sum(masses)


def remembered(index, epochs=3):
    """A history of so many epochs of random answers, ours and that of the oracle."""
    record, generator = papers_batch.Record(SAMPLES), torch.Generator().manual_seed(11)
    criterion = CRL(SAMPLES)
    for _ in range(epochs):
        order = torch.randperm(SAMPLES, generator=generator)
        for part in order.split(6):
            logits = torch.randn(len(part), 3, generator=generator, dtype=torch.float64)
            target = torch.randint(3, (len(part),), generator=generator)
            criterion(logits, target, index=part)
            labels, weights, _ = rows_of(target, 3)
            record.see(part.tolist(), logits.tolist(), labels, weights)
        criterion.epoch_end()
        record.end_epoch()
    return criterion.history, record.shares(index.tolist())


def build(pair, index, **options):
    """Our loss, what its forward and its oracle must be told."""
    kind, _, knobs = pair
    if pair not in RANKED:
        also = {"condition": "margin"} if pair in UNRANKED else {}
        return kind(**knobs, **also, **options), {}, ()
    criterion = kind(size=SAMPLES, condition="ranking", **knobs, **options)
    criterion.history, shares = remembered(index)
    return criterion, {"index": index}, (shares,)


def compare(pair, logits, target, weight=None, ignored=None):
    """The sum and the mean, in one pass and by autograd."""
    index = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(1))[: len(logits)]
    for reduction in ("mean", "sum"):
        for fused in (False, "auto"):
            options = {"weight": weight, "reduction": reduction, "fused": fused}
            criterion, side, ranks = build(pair, index, ignore_index=-100 if ignored is None else ignored, **options)
            if reduction == "mean" and not fused:
                value, gradient, mass = wanted(*pair[1:], logits, target, ranks, weight=weight, ignored=ignored)
            z = logits.clone().requires_grad_()
            found = criterion(z, target, **side)
            divisor = mass if reduction == "mean" else 1.0
            close(found.detach(), value / divisor)
            close(torch.autograd.grad(found, z)[0], gradient / divisor)


LOGITS, LABELS = batch(classes=5, scale=4.0)
TIES = tied(rows=12)
NARROW = batch(classes=2, rows=8, scale=3.0, seed=1)
BATCHES = {
    "hard": (LOGITS, LABELS),
    "two classes": NARROW,
    "ties": TIES,
    "soft": (LOGITS, soft(LOGITS)),
    "soft, ties": (TIES[0], soft(TIES[0], seed=1)),
    "one row": (LOGITS[:1], LABELS[:1]),
    "all right": (LOGITS, LOGITS.argmax(1)),
    "all wrong": (LOGITS, LOGITS.argmin(1)),
    "sure": (LOGITS * 8, LABELS),
}


@every_pair
@pytest.mark.parametrize("which", BATCHES)
def test_values_and_gradients(pair, which):
    compare(pair, *BATCHES[which])


@every_pair
def test_ignored_rows_and_class_weights(pair):
    """Weights between 0 and 2; every third row ignored, and all but one."""
    logits, target = batch(classes=10, rows=10, scale=4.0, seed=3)
    weight = torch.linspace(0.0, 2.0, 10, dtype=torch.float64)
    compare(pair, logits, target, weight)
    compare(pair, logits, soft(logits), weight)
    for rows in (slice(1, None, 3), slice(1, None)):
        hard, smooth = target.clone(), soft(logits)
        hard[rows], smooth[rows] = IGNORED, 0.0
        hard[0] = 2
        compare(pair, logits, hard, weight, ignored=IGNORED)
        compare(pair, logits, smooth, weight)


@every_pair
@pytest.mark.parametrize("dim", [1, -1])
def test_dense(pair, dim):
    """The rows of a batch of images are their pixels, image by image."""
    flat, target = batch(classes=5, rows=12, scale=4.0, seed=6)
    index = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(2))[:12]
    criterion, side, ranks = build(pair, index, dim=dim)
    side = {key: numbers.reshape(2, 3, 2) for key, numbers in side.items()}
    value, gradient, mass = wanted(*pair[1:], flat, target, ranks)
    z = flat.reshape(2, 3, 2, 5).movedim(-1, dim).clone().requires_grad_()
    found = criterion(z, target.reshape(2, 3, 2), **side)
    close(found.detach(), value / mass)
    close(torch.autograd.grad(found, z)[0].movedim(dim, -1).reshape(12, 5), gradient / mass)


def test_history_of_soft_labels_repeats_and_ignored_rows():
    """Parts of right answers, a sample that comes twice in an epoch, rows that do not count."""
    criterion, record = CRL(6), papers_batch.Record(6)
    generator = torch.Generator().manual_seed(3)
    for _ in range(4):
        for index in (torch.tensor([0, 1, 2, 1]), torch.tensor([3, 2, 5, 4])):
            logits = torch.randn(4, 3, generator=generator, dtype=torch.float64)
            label = torch.randint(1, 9, (4, 3), generator=generator).double()
            label[0], label[1] = torch.tensor([1.0, 0.0, 1.0]), torch.tensor([4.0, 3.0, 1.0])
            label /= 2 ** label.sum(1, keepdim=True).log2().round()  # nearly a sum of 1, in exact binary fractions
            label[:, 0] += 1 - label.sum(1)
            label[3] = 0.0
            criterion(logits, label, index=index)
            labels, weights, _ = rows_of(label, 3)
            record.see(index.tolist(), logits.tolist(), labels, weights)
        criterion.epoch_end()
        record.end_epoch()
        close(criterion.history.share(torch.arange(6), torch.float64), record.shares(range(6)))
    assert len(set(record.shares(range(6)))) > 3


def test_history_without_a_difference_ranks_nobody():
    """All right in every epoch: least and largest are the same, and the released code divides 0 by 0."""
    criterion, record = CRL(3), papers_batch.Record(3)
    z, y = 4 * torch.eye(3, dtype=torch.float64), torch.arange(3)
    for _ in range(2):
        criterion(z, y, index=y)
        criterion.epoch_end()
        record.see(range(3), z.tolist(), (z / 4).tolist(), [1.0] * 3)
        record.end_epoch()
    assert record.shares(range(3)) == criterion.history.share(y, torch.float64).tolist() == [0.0] * 3


@ways
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_of_many_rows_mmce_compares_one_of_each_run(weighted, dense, fused, monkeypatch):
    """The penalty and its gradient are those of the rows that were drawn, and of nothing else."""
    drawn = []

    def noted(keep, count, draw=core_batch.drawn):
        drawn.append(draw(keep, count))
        return drawn[-1]

    monkeypatch.setattr("confide.losses.mmce.drawn", noted)
    logits, target = batch(classes=5, rows=30, scale=4.0, seed=7)
    target[::4] = IGNORED
    knobs = {"strength": 2.0, "weighted": weighted, "width": 0.4}
    for sample in (6, 25):  # fewer than the 22 rows to keep, and more
        criterion = MMCE(**knobs, sample=sample, ignore_index=IGNORED, fused=fused).penalty_only()
        z = (logits.reshape(3, 10, 5).movedim(-1, 1) if dense else logits).clone().requires_grad_()
        found = criterion(z, target.reshape(3, 10) if dense else target)
        (gradient,) = torch.autograd.grad(found, z)
        number, real = drawn[-1]
        chosen = number[real].tolist()
        kept = [n for n in range(30) if target[n] != IGNORED]
        if sample == 25:
            assert chosen == kept
        else:
            edges = [run * len(kept) // sample for run in range(sample + 1)]
            assert all(n in kept[start:end] for n, start, end in zip(chosen, edges, edges[1:], strict=False))
            assert len(chosen) == sample
        labels, weights, _ = rows_of(target[chosen], 5)
        value, slopes = steps.differentiated(
            lambda rows, q=labels, w=weights: mmce(rows, q, w, **knobs), logits[chosen].tolist()
        )
        full = torch.zeros(30, 5, dtype=torch.float64)
        full[chosen] = torch.tensor(slopes, dtype=torch.float64)
        close(found.detach(), value)
        close(gradient.movedim(1, -1).reshape(30, 5), full)


# The oracles against themselves.


@every_pair
def test_complex_steps_are_central_differences(pair):
    """Of what each oracle gives where nothing in it is held."""
    if pair in UNRANKED:
        return
    kind, oracle, knobs = pair
    ranks = ([0.1 * n for n in range(6)],) if pair in RANKED else ()
    logits, target = batch(classes=4, rows=6, scale=2.0, seed=8)
    labels, weights, _ = rows_of(target, 4)

    def value(rows):
        return steps.held(oracle(rows, labels, weights, *ranks, **knobs))

    found, gradient = steps.differentiated(lambda rows: oracle(rows, labels, weights, *ranks, **knobs), logits.tolist())
    assert found == value(logits.tolist())
    for n in range(6):
        for k in range(4):
            above, below = logits.clone(), logits.clone()
            above[n, k] += 1e-5
            below[n, k] -= 1e-5
            difference = (value(above.tolist()) - value(below.tolist())) / 2e-5
            assert difference == pytest.approx(gradient[n][k], abs=1e-6, rel=1e-6)
    assert issubclass(kind, Loss)
