"""What docs/methods/the-one-gradient.md says of each method, claim by claim, in float64.

Nothing here uses a closed form of confide's: penalties are written out as printed and differentiated by autograd, or
the claim is about what a loss itself gives. f is read off as in the page: minus the label shift on the predicted class,
plus the shift elsewhere. `test_table2.py` has the rows of label smoothing, MbLS and ACLS, `test_drift.py` what a drift
does.
"""

import math

import pytest
import torch

from confide.losses import (
    ACLS,
    ALL,
    CPC,
    CRL,
    DCA,
    MDCA,
    MMCE,
    NACL,
    SVLS,
    ACLSHeld,
    ACLSReleased,
    Brier,
    ConfidencePenalty,
    DualFocal,
    Focal,
    FocalSD,
    LabelRelaxation,
    MbLS,
    MbLSSquared,
    SoftECE,
)  # fmt: skip
from confide.losses.history import ONE as RIGHT
from confide.testing import variants
from confide.testing.samples import side_of

CLASSES = 6
EXACT = 1e-12


def batch(rows=40, classes=CLASSES, scale=2.0, seed=0):
    """Logits with every kind of prediction, and labels: the first half is right, the other wrong."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(rows, classes, generator=generator, dtype=torch.float64) * scale
    right = torch.arange(rows) < rows // 2
    return z, torch.where(right, z.argmax(1), (z.argmax(1) + 1) % classes)


def hot(index, classes=CLASSES):
    return torch.nn.functional.one_hot(index, classes).double()


def push(penalty, z):
    """The label shift of a penalty that is added to cross-entropy: minus its gradient."""
    z = z.clone().requires_grad_()
    return -torch.autograd.grad(penalty(z), z)[0]


def shift(criterion, z, y, **side):
    """The label shift of a loss of ours, from its gradient by autograd."""
    logits = z.clone().requires_grad_()
    plain(criterion)(logits, y, **side).backward()
    return z.softmax(1) - hot(y, z.shape[1]) - logits.grad


def plain(criterion):
    """The loss of all rows added up, by autograd."""
    criterion.reduction, criterion.fused = "sum", False
    return criterion


def softened(shift, z):
    """f from a shift."""
    return torch.where(hot(z.argmax(1), z.shape[1]) == 1, -shift, shift)


def same(found, wanted, tolerance=EXACT):
    torch.testing.assert_close(found, wanted, atol=tolerance, rtol=0)


# Focal loss.


def g(p, gamma):
    """By what focal loss multiplies the gradient of cross-entropy."""
    return (1 - p) ** gamma - gamma * p * (1 - p) ** (gamma - 1) * p.log()


@pytest.mark.parametrize("gamma", [1.0, 3.0, 5.0])
def test_focal_softens_by_what_its_gradient_lacks(gamma):
    z, y = batch()
    p = z.softmax(1)
    sure = p.gather(1, y[:, None])
    found = shift(Focal(gamma=gamma), z, y)
    same(found, (p - hot(y)) * (1 - g(sure, gamma)))
    f = softened(found, z)[:20]  # predictions that are right
    same(f.gather(1, y[:20, None]), ((1 - sure) * (1 - g(sure, gamma)))[:20])


@pytest.mark.parametrize(("gamma", "turn"), [(3.0, 0.2526), (5.0, 0.1968)])
def test_focal_hardens_where_the_true_class_is_improbable(gamma, turn):
    """f of the true class is negative below the turn and positive above it: no constant."""
    p = torch.tensor([turn - 1e-4, turn + 1e-4, 0.05, 0.9], dtype=torch.float64)
    assert (g(p, gamma) > 1).tolist() == [True, False, True, False]
    z = torch.stack((p, *[(1 - p) / 5] * 5), 1).log()
    lowered = -shift(Focal(gamma=gamma), z, torch.zeros(4, dtype=torch.long))[:, 0]
    assert (lowered < 0).tolist() == [True, False, True, False]


def test_focal_stops_softening_as_the_prediction_grows_sure():
    z = torch.zeros(3, CLASSES, dtype=torch.float64)
    z[:, 0] = torch.tensor([4.0, 8.0, 16.0])
    lowered = -shift(Focal(gamma=3.0), z, torch.zeros(3, dtype=torch.long))[:, 0]
    same(lowered / (1 - z.softmax(1)[:, 0]), torch.ones(3, dtype=torch.float64), 1e-2)  # f is 1 - p itself
    assert lowered[2] < 1e-6


def test_flsd_looks_at_the_true_class():
    """Predicted wrong with certainty: p_y < 0.2, so gamma is 5, though the predicted class has far more than 0.2."""
    z = torch.tensor([[3.0, 0.0, 0.0, 0.0, 0.0, 0.0]]).double()
    y = torch.tensor([1])
    assert z.softmax(1)[0, 1] < 0.2 < z.softmax(1)[0, 0]
    same(shift(FocalSD(), z, y), shift(Focal(gamma=5.0), z, y))
    assert (shift(FocalSD(), z, y) - shift(Focal(gamma=3.0), z, y)).abs().max() > 0.01


def test_dual_focal():
    """The runner-up is lowered by b; the true class as in focal loss, by what the gradient lacks, and raised by b p."""
    z, y = batch()
    gamma, p, rows = 3.0, z.softmax(1), torch.arange(len(z))
    mine = p.gather(1, y[:, None])
    rival, place = torch.where(p < mine, p, 0.0).max(1, keepdim=True)
    lack, runner_up = 1 - mine + rival, torch.where(rival > 0, hot(place[:, 0]), 0.0)
    assert 0 < (rival == 0).sum() < len(rows)
    a = lack**gamma - gamma * mine * lack ** (gamma - 1) * mine.log()
    b = -gamma * lack ** (gamma - 1) * rival * mine.log()
    same(shift(DualFocal(gamma=gamma), z, y), (p - hot(y)) * (1 - a) + b * (p - runner_up))


# CPC, as printed: sums over ordered pairs.

ONE, REST = 0.3, 0.2


def against(z, y):
    """L_1v1."""
    p = z.softmax(1)
    mine = p.gather(1, y[:, None])
    return -((mine / (mine + p)).log() * (1 - hot(y))).sum()


def level(z, y):
    """L_BE, over ordered pairs k, l of classes that are not y."""
    p, other = z.softmax(1), 1 - hot(y)
    pair = (p[:, :, None] / (p[:, :, None] + p[:, None, :])).log()
    return -((pair + pair.transpose(1, 2)) * other[:, :, None] * other[:, None, :]).sum()


def cpc_terms(z, y):
    """The two fractions of Table 2: of each class against the true one, and summed over the others against it."""
    p = z.softmax(1)
    mine, other = p.gather(1, y[:, None]), 1 - hot(y)
    duel = p / (mine + p) * other
    pairs = (p[:, None, :] - p[:, :, None]) / (p[:, None, :] + p[:, :, None]) * other[:, None, :]
    return duel, pairs.sum(2) * other


def test_cpc():
    """The true class is raised, each other lowered by its duel, and moved toward the level of the others."""
    z, y = batch()
    duel, toward = cpc_terms(z, y)
    found = push(lambda z: ONE * against(z, y) + REST * level(z, y), z)
    same(found, ONE * (hot(y) * duel.sum(1, keepdim=True) - duel) + 2 * REST * toward)


def test_cpc_row_is_printed_with_a_wrong_sign_and_without_a_factor():
    """Where the prediction is right. Off the predicted class the printed row is off by twice its own first term."""
    z, y = (x[:20] for x in batch())
    duel, toward = cpc_terms(z, y)
    found = softened(push(lambda z: ONE * against(z, y) + REST * level(z, y), z), z)
    printed = torch.where(hot(y) == 1, -ONE * duel.sum(1, keepdim=True), ONE * duel + REST * toward)
    same(printed - found, 2 * ONE * duel - REST * toward)
    sharpened = softened(push(lambda z: against(z, y), z), z)
    assert (sharpened < 0).all()  # on every class: the first term only sharpens


def test_cpc_class_is_the_printed_loss_with_means():
    z, y = batch()
    pairs, quads = CLASSES - 1, (CLASSES - 1) * (CLASSES - 2)
    found = shift(CPC(pairs=ONE * pairs, rest=4 * REST * quads), z, y)
    same(found, push(lambda z: ONE * against(z, y) + REST * level(z, y), z), 1e-11)


# MDCA.


def overconfident(rows=12):
    """A batch in which every row predicts class 0 and only that class has more probability than labels."""
    z, _ = batch(rows, scale=0.7, seed=3)
    z[:, 0] += 3
    y = torch.arange(rows) % CLASSES
    gap = (z.softmax(1) - hot(y)).mean(0)
    assert (gap > 0).tolist() == [True] + [False] * (CLASSES - 1)
    return z, y


def gaps(z, y):
    """The sum of [A] S-Eq. 9 times the number of rows: the gradient on a row as if it stood alone."""
    return (z.softmax(1) - hot(y)).mean(0).abs().sum() * len(z)


def test_mdca():
    """2 p (1 - p) on the predicted class and 2 p p_j on the others, where only the predicted class is overconfident."""
    z, y = overconfident()
    p = z.softmax(1)
    wanted = 2 * p[:, :1] * torch.where(hot(torch.zeros_like(y)) == 1, 1 - p, p)
    same(softened(push(lambda z: gaps(z, y), z), z), wanted)
    same(softened(shift(MDCA(strength=CLASSES), z, y), z), wanted)  # the class takes the mean over the classes


def test_mdca_row_is_printed_with_half_of_it_on_the_predicted_class():
    """And with more than it elsewhere, so that its two sides differ by 1 - p where they should be equal."""
    z, y = overconfident()
    p = z.softmax(1)
    exact, sure = softened(push(lambda z: gaps(z, y), z), z), p[:, :1]
    printed = torch.where(hot(torch.zeros_like(y)) == 1, p * (1 - p), p * (1 + sure))
    same(exact[:, 0] / printed[:, 0], torch.full((len(z),), 2.0, dtype=torch.float64))
    same(exact[:, 1:] / printed[:, 1:], (2 * sure / (1 + sure)).expand(-1, CLASSES - 1))
    same(printed[:, 1:].sum(1) - printed[:, 0], 1 - sure[:, 0])
    same(exact[:, 1:].sum(1), exact[:, 0])


def test_mdca_sign_of_an_absolute_value_leaves_no_gradient():
    """[A] S-Eq. 10 defines a_k so that all are 1; then a_j - sum_k a_k p_k is 0."""
    z, y = overconfident()
    p = z.softmax(1)
    a = (p - hot(y)).mean(0).abs().sign()
    assert (a == 1).all()
    assert (p * (a - (a * p).sum(1, keepdim=True))).abs().max() <= EXACT


# MbLS and ACLS with an end held still.


def test_mbls_row_is_printed_for_a_maximum_held_still():
    """Held still, the maximum gets no push, as printed; the push on the rest is the same, so the sum is not zero."""
    z, y = batch(scale=5.0)
    margin, strength = 4.0, 0.1

    def printed(z):
        return strength * (z.amax(1, keepdim=True).detach() - z - margin).relu().sum()

    held, full = push(printed, z), shift(MbLS(margin=margin, strength=strength, over="sum"), z, y)
    winner = hot(z.argmax(1)) == 1
    assert not held[winner].any()
    same(held[~winner], full[~winner])
    same(full[winner], -held.sum(1))
    assert full[winner].min() < -0.1 - EXACT  # more than one class beyond the margin


def test_squared_mbls_adds_up_what_it_gives():
    z, y = batch(scale=5.0)
    f = softened(shift(MbLSSquared(margin=4.0, strength=0.1, over="sum"), z, y), z)
    excess = (z.amax(1, keepdim=True) - z - 4.0).relu()
    same(f, 0.2 * torch.where(hot(z.argmax(1)) == 1, excess.sum(1, keepdim=True), excess))


def test_released_acls_bounds_the_largest_logit_itself():
    """2 (z - M) on the predicted class, whatever the distances are; the others over C - 1."""
    z, y = batch(scale=5.0)
    margin, top, rest = 4.0, 0.1, 0.01
    f = softened(shift(ACLSReleased(margin=margin, top=top, rest=rest), z, y), z)
    high, winner = z.amax(1, keepdim=True), hot(z.argmax(1)) == 1
    excess = (high - z - margin).relu()
    same(f, torch.where(winner, 2 * top * (high - margin).relu(), 2 * rest / (CLASSES - 1) * excess))


# CRL.


def ranked(history, **knobs):
    """A CRL whose samples were right in these numbers of four epochs."""
    criterion = CRL(size=len(history), **knobs)
    criterion.history.right += torch.tensor(history, dtype=torch.int32) * RIGHT
    criterion.history.epochs += 3
    criterion.epoch_end()  # the fourth
    return criterion


def pair(a, b):
    """Two rows that predict class 0 with confidences a and b."""
    c = torch.tensor([a, b], dtype=torch.float64)
    return torch.stack((c, *[(1 - c) / (CLASSES - 1)] * (CLASSES - 1)), 1).log()


def test_crl_softens_one_of_a_pair_and_hardens_the_other():
    """The row that was right less often but is surer has the printed f > 0; its partner has the same form, negated."""
    z, y = pair(0.9, 0.6), torch.zeros(2, dtype=torch.long)
    f = softened(shift(ranked([1, 3], strength=0.5), z, y, index=torch.arange(2)), z)
    p = z.softmax(1)
    printed = 0.5 * p[:, :1] * torch.where(hot(y) == 1, 1 - p, p)
    # With two rows each is the other's next, so that every push counts twice.
    same(f, 2 * printed * torch.tensor([[1.0], [-1.0]], dtype=torch.float64))


def test_crl_acts_on_a_right_order_that_is_too_close():
    """h differs by 2/3; confidences in the right order are still pushed until they differ by that."""
    y, index = torch.zeros(2, dtype=torch.long), torch.arange(2)
    for high, acts in ((0.5, True), (0.85, True), (0.95, False)):
        z = pair(high, 0.2)  # the surer row was right more often: the printed C is 0
        criterion = ranked([4, 2, 1])
        assert criterion.history.share(index, torch.float64).diff().item() == pytest.approx(-2 / 3)
        found = shift(criterion, z, y, index=index)
        assert bool(found.abs().max() > 1e-3) == acts


def test_crl_does_nothing_before_the_first_epoch_ends():
    z, y = batch(8)
    assert not shift(CRL(size=8), z, y, index=torch.arange(8)).abs().max() > EXACT


# Methods that see nothing of a row but its confidence.


@pytest.mark.parametrize("kind", [CRL, DCA, MMCE, SoftECE], ids=lambda kind: kind.__name__)
def test_confidence_methods_share_one_shape(kind):
    """f is w c (1 - c) on the predicted class and w c p_j elsewhere, with one number w for the row."""
    z, y = batch(16)
    criterion = kind.example()
    f = softened(shift(criterion, z, y, **side_of(criterion, z)), z)
    p, winner = z.softmax(1), hot(z.argmax(1)) == 1
    sure = p.amax(1, keepdim=True)
    w = f / (sure * torch.where(winner, 1 - p, p))
    assert w.abs().amax() > 1e-3
    same(w, w[:, :1].expand_as(w), 1e-10)


def test_dca_drives_every_row_alike():
    z, y = batch()
    c, a = z.softmax(1).amax(1), (z.argmax(1) == y).double()
    gap = (c - a).mean().item()
    same(drive(DCA(strength=0.7), z, y), torch.full_like(c, 0.7 * math.copysign(1.0, gap)))


def test_mmce_drives_a_row_by_its_surplus_and_those_near_it():
    z, y = batch()
    c, a = z.softmax(1).amax(1).tolist(), (z.argmax(1) == y).double().tolist()
    lack, count, width = [right - sure for right, sure in zip(a, c, strict=True)], len(c), 0.4
    wanted = []
    for n in range(count):
        near = [math.exp(-abs(c[n] - c[m]) / width) * lack[m] for m in range(count)]
        turn = sum(math.copysign(1.0, c[n] - c[m]) * near[m] for m in range(count) if m != n)
        wanted.append(-2 * 0.7 / count * (sum(near) + lack[n] * turn / width))
    same(drive(MMCE(strength=0.7, width=width), z, y), torch.tensor(wanted, dtype=torch.float64), 1e-10)


def test_soft_ece_drives_a_row_by_the_gaps_of_its_bins():
    z, y = batch()
    c, a = z.softmax(1).amax(1), (z.argmax(1) == y).double()
    bins, temperature = 5, 0.02
    middles = (torch.arange(bins) + 0.5).double() / bins
    u = (-(c[:, None] - middles).square() / temperature).softmax(1)
    gap = (u * (c - a)[:, None]).sum(0) / u.sum(0)
    error = (u.mean(0) * gap.square()).sum().sqrt()
    turn = 2 / temperature * u * (middles - (u * middles).sum(1, keepdim=True))
    each = 2 * gap * (u + (c - a)[:, None] * turn) - gap.square() * turn
    found = drive(SoftECE(strength=0.7, bins=bins, temperature=temperature), z, y)
    same(found, 0.7 * each.sum(1) / (2 * error), 1e-10)


def drive(criterion, z, y):
    """By what a method that sees nothing but confidences drives that of each row down."""
    f, sure = softened(shift(criterion, z, y), z), z.softmax(1).amax(1)
    return f.gather(1, z.argmax(1)[:, None])[:, 0] / (sure * (1 - sure))


# Label relaxation, confidence penalty, Brier score.


def test_label_relaxation():
    """Outside the set alpha of the mass goes to the others as the prediction shares it; inside the label is p."""
    z, y = batch(scale=4.0)
    alpha, p = 0.1, z.softmax(1)
    mine = p.gather(1, y[:, None])
    outside, inside = alpha * torch.where(hot(y) == 1, -1.0, p / (1 - mine)), p - hot(y)
    enough = mine >= 1 - alpha
    assert 0 < enough.sum() < 20
    same(shift(LabelRelaxation(alpha=alpha), z, y), torch.where(enough, inside, outside))


def test_confidence_penalty():
    z, y = batch()
    strength, p = 0.5, z.softmax(1)
    entropy = -(p * p.log()).sum(1, keepdim=True)
    found = shift(ConfidencePenalty(strength=strength), z, y)
    same(found, -strength * p * (p.log() + entropy))
    same(found, push(lambda z: strength * (z.softmax(1) * z.log_softmax(1)).sum(), z))


def test_confidence_penalty_lowers_every_class_that_is_likelier_than_its_entropy_says():
    """The predicted class always, and others with -log p_j < H, too: f is negative there."""
    z = torch.tensor([[2.0, 1.8, 0.0, -1.0, -2.0, -3.0]]).double()
    f = softened(shift(ConfidencePenalty(), z, torch.tensor([0])), z)
    assert (f > 0).tolist() == [[True, False, True, True, True, True]]
    many, y = batch(400, seed=5)
    lowered = -shift(ConfidencePenalty(), many, y).gather(1, many.argmax(1)[:, None])
    assert (lowered > 0).all()


@pytest.mark.parametrize("criterion", [ConfidencePenalty(), MDCA(), Focal(), Brier()], ids=repr)
def test_pushes_through_probabilities_fade_in_the_corners(criterion):
    """Everything that sees the logits through p alone has f -> 0 as p -> 1."""
    z = torch.zeros(1, CLASSES, dtype=torch.float64)
    sizes = []
    for z[0, 0] in (8.0, 16.0, 24.0):
        sizes.append(shift(criterion, z, torch.tensor([0])).abs().max().item())
    assert sizes[1] < 1e-2 * sizes[0]
    assert sizes[2] < 1e-2 * sizes[1]


@pytest.mark.parametrize("criterion", [MbLS(), ACLS()], ids=repr)
def test_pushes_through_logits_do_not_fade(criterion):
    z = torch.zeros(1, CLASSES, dtype=torch.float64)
    sizes = []
    for z[0, 0] in (12.0, 24.0):
        sizes.append(-shift(criterion, z, torch.tensor([0]))[0, 0].item())
    assert sizes[1] >= sizes[0] > 0.01


def test_brier():
    z, y = batch()
    p, q = z.softmax(1), hot(y)
    slope = 2 * p * ((p - q) - (p * (p - q)).sum(1, keepdim=True))
    same(shift(Brier(), z, y), p - q - slope)


def test_brier_of_two_classes_is_softer_than_cross_entropy_everywhere():
    """f of the true class is (1 - p)(1 - 2p)^2, and the gradient of a hopelessly wrong row is nothing."""
    z = torch.linspace(-12, 12, 25, dtype=torch.float64)[:, None] * torch.tensor([[1.0, -1.0]])
    y = torch.zeros(25, dtype=torch.long)
    p = z.softmax(1)[:, 0]
    found = shift(Brier(), z, y)
    same(-found[:, 0], (1 - p) * (1 - 2 * p) ** 2)
    assert (p[0] - 1 - found[0, 0]).abs() < 1e-9  # p_y is nearly 0


# Neighbours.


def border():
    """Three columns of pixels, the last of another class; logits of class 0 at 2, -0.5, 0.2, ..."""
    z = torch.tensor([2.0, -0.5, 0.2, 0.9, 0.0, -3.0]).double().view(1, CLASSES, 1, 1).expand(1, CLASSES, 3, 3)
    y = torch.zeros(1, 3, 3, dtype=torch.long)
    y[..., 2] = 3
    return z.contiguous(), y


def centre(criterion, z, y):
    """The label shift of the middle pixel."""
    logits = z.clone().requires_grad_()
    plain(criterion)(logits, y).backward()
    label = torch.nn.functional.one_hot(y, CLASSES).movedim(-1, 1)
    return (z.softmax(1) - label - logits.grad)[0, :, 1, 1]


def test_nacl():
    """A constant push on every logit, toward the share of its class: 6/9 for class 0, 3/9 for class 3."""
    z, y = border()
    share = torch.tensor([6 / 9, 0, 0, 3 / 9, 0, 0], dtype=torch.float64)
    logits = z[0, :, 1, 1]
    found = centre(NACL(strength=0.2, over="sum"), z, y)
    same(found, -0.2 * (logits - share).sign())
    assert found.tolist() == pytest.approx([-0.2, 0.2, -0.2, -0.2, 0.0, 0.2])
    same(centre(NACL(strength=0.2, over="sum", distance="l2"), z, y), -0.4 * (logits - share))


def test_svls():
    """Half of the label goes to the classes around, as a Gaussian of the distance shares it; inside it goes nowhere."""
    z, y = border()
    side, corner = math.exp(-0.5), math.exp(-1.0)
    there = (side + 2 * corner) / (4 * side + 4 * corner)
    same(centre(SVLS(), z, y), torch.tensor([-0.5 * there, 0, 0, 0.5 * there, 0, 0], dtype=torch.float64))
    assert not centre(SVLS(), z, torch.zeros_like(y)).abs().max() > EXACT


@pytest.mark.parametrize("sigma", [0.3, 1.0, 50.0])
def test_svls_keeps_half_of_the_label_whatever_its_width(sigma):
    z, y = border()
    y.fill_(3)
    y[0, 1, 1] = 0  # a pixel among others only
    same(centre(SVLS(sigma=sigma), z, y), torch.tensor([-0.5, 0, 0, 0.5, 0, 0]).double())


# Sums over the classes.


def total_push(criterion, z, y):
    """On all logits of a row together, by which they move down."""
    logits = z.clone().requires_grad_()
    plain(criterion)(logits, y, **side_of(criterion, logits)).backward()
    return logits.grad.sum(1)


def test_only_what_is_no_gradient_pushes_on_a_constant_that_it_cannot_see():
    """A function that a constant on all logits leaves alone has gradients that sum to zero."""
    odd = set()
    for make in (make for kind in ALL for make in variants(kind)):
        card = make().traits
        odd |= {(type(make()), make().extra_repr())} if card.invariant and not card.balanced else set()
    assert {kind for kind, _ in odd} == {ACLSHeld, CRL}
    assert all("condition='margin'" in knobs for kind, knobs in odd if kind is CRL)


def test_acls_held_meets_no_resistance():
    """Its push on all logits together is the same wherever they are; that of the others turns them back."""
    z, y = batch(12, scale=5.0)
    pushes = {c: total_push(ACLSHeld(), z + c, y) for c in (-1000.0, 0.0, 1000.0)}
    same(pushes[-1000.0], pushes[0.0], 1e-9)
    same(pushes[1000.0], pushes[0.0], 1e-9)
    assert pushes[0.0].abs().max() > 0.1
    for criterion in (ACLSReleased(), NACL()):
        logits, label = (z.T[None], y[None]) if criterion.traits.spatial else (z, y)
        low, high = (total_push(criterion, logits + c, label) for c in (-1000.0, 1000.0))
        assert (high > 0).all()
        assert (low <= EXACT).all()
        assert (low < -0.01).any()


def test_the_label_sums_to_one_less_what_the_gradient_does():
    z, y = batch(12, scale=5.0)
    for kind in (ACLSHeld, ACLSReleased):
        label = kind().target(z, y)
        same(label.sum(1) - 1, -total_push(kind(), z, y))
