"""The rows of the ACLS paper's Table 2 as they follow from each loss itself, and where the printed ones are wrong."""

import pytest
import torch

from confide.losses import ACLS, ACLSHeld, CrossEntropy, LabelSmoothing, MbLS

CLASSES, MARGIN = 6, 4.0


def rows():
    """Logits with one, some and no distance beyond the margin, and labels: predicted right, then wrong."""
    logits = torch.tensor(
        [[9.0, 1.0, 6.0, 2.5, 7.0, 4.0], [0.5, 7.0, 6.0, -8.0, 1.0, 2.0], [1.0, 0.5, 0.0, 2.0, 1.5, 1.0]]
    ).double()
    logits = torch.cat((logits, logits))
    predicted = logits.argmax(1)
    wrong = (predicted + 2) % CLASSES
    return logits, torch.cat((predicted[:3], wrong[3:])), predicted


def entries():
    """Every (row, class) with its logits, label and predicted class."""
    logits, labels, predicted = rows()
    for n, (z, y, p) in enumerate(zip(logits.tolist(), labels.tolist(), predicted.tolist(), strict=True)):
        for j in range(CLASSES):
            yield n, j, z, y, p


def check(criterion, smoothing, indicator):
    """`smoothing` and `indicator` are f and C of one entry; where C is 0 the label is not touched, so f reads as 0."""
    logits, labels, _ = rows()
    found = criterion.smoothing(logits, labels)
    for n, j, z, y, p in entries():
        c = indicator(j, z, y, p)
        assert found.C[n, j] == float(c), (n, j)
        assert found.f[n, j] == pytest.approx(smoothing(j, z, y, p) if c else 0.0, abs=1e-12), (n, j)


def check_eq8(criterion):
    """Eq. 8: the gradient is p - (q - f C) on the predicted class and p - (q + f C) elsewhere."""
    logits, labels, predicted = rows()
    z = logits.clone().requires_grad_()
    type(criterion)(**settings(criterion), reduction="sum", fused=False)(z, labels).backward()
    f, c = criterion.smoothing(logits, labels)
    sign = torch.ones_like(f).scatter_(1, predicted[:, None], -1.0)
    label = torch.nn.functional.one_hot(labels, CLASSES) + sign * f * c
    torch.testing.assert_close(z.grad, logits.softmax(1) - label, atol=1e-12, rtol=0)


def settings(criterion):
    names = ("smoothing", "margin", "strength", "over", "top", "rest", "form")
    found = {name: getattr(criterion, "epsilon" if name == "smoothing" else name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


CRITERIA = [
    CrossEntropy(), LabelSmoothing(smoothing=0.1), MbLS(margin=MARGIN, strength=0.1, over="sum"),
    MbLS(margin=MARGIN, strength=0.1), ACLS(margin=MARGIN), ACLS(margin=MARGIN, form="adaptive"),
    ACLS(margin=MARGIN, form="conditional"), ACLSHeld(margin=MARGIN),
]  # fmt: skip


@pytest.mark.parametrize("criterion", CRITERIA, ids=repr)
def test_eq8(criterion):
    check_eq8(criterion)


def test_cross_entropy_softens_nothing():
    check(CrossEntropy(), lambda *_: 0.0, lambda *_: False)


def test_label_smoothing():
    """eps_1 and eps_2 belong to the true class and the others; the printed row has them on the predicted class."""
    eps = 0.1
    one, two = eps * (1 - 1 / CLASSES), eps / CLASSES

    def smoothing(j, z, y, p):
        if p == y:  # the printed row
            return one if j == p else two
        return {p: -two, y: -one}.get(j, two)  # a wrong prediction is raised, and the true class lowered

    check(LabelSmoothing(smoothing=eps), smoothing, lambda *_: True)


@pytest.mark.parametrize(("over", "each"), [("sum", 0.1), ("mean", 0.1 / CLASSES)])
def test_mbls(over, each):
    """The printed C is 0 on the predicted class; in fact it is lowered once for every class beyond the margin."""

    def beyond(z, p):
        return sum(z[p] - x > MARGIN for x in z)

    def smoothing(j, z, y, p):
        return each * beyond(z, p) if j == p else each

    def indicator(j, z, y, p):
        return beyond(z, p) > 0 if j == p else z[p] - z[j] > MARGIN

    check(MbLS(margin=MARGIN, strength=0.1, over=over), smoothing, indicator)


TOP, REST = 0.1, 0.01


def test_held_acls_has_the_printed_row():
    """Eq. 10 and 11. (At a distance of exactly M the printed C is 1 and f is 0: the same label.)"""

    def smoothing(j, z, y, p):
        return TOP * (z[p] - min(z) - MARGIN) if j == p else REST * (z[p] - z[j] - MARGIN)

    def indicator(j, z, y, p):
        return (z[p] - min(z) if j == p else z[p] - z[j]) > MARGIN

    check(ACLSHeld(margin=MARGIN, top=TOP, rest=REST), smoothing, indicator)


def test_acls():
    """Of the function itself: what the lowest class and the others receive, the predicted class gives."""

    def excess(distance):
        return max(0.0, distance - MARGIN)

    def smoothing(j, z, y, p):
        spread = TOP * excess(z[p] - min(z))
        if j == p:
            return spread + sum(REST * excess(z[p] - x) for x in z)
        return REST * excess(z[p] - z[j]) + (spread if j == z.index(min(z)) else 0.0)

    def indicator(j, z, y, p):
        return (z[p] - min(z) if j == p else z[p] - z[j]) > MARGIN

    check(ACLS(margin=MARGIN, top=TOP, rest=REST), smoothing, indicator)


def test_eq13_as_printed_gives_twice_eq12():
    """Both ends held still, the gradient of Eq. 13 without the factor 1/2 is Eq. 12 at twice the strengths."""
    logits, labels, predicted = rows()
    z = logits.clone().requires_grad_()
    high, low = z.gather(1, predicted[:, None]), z.detach().amin(1, keepdim=True)
    others = (high.detach() - z - MARGIN).relu() ** 2
    (TOP * ((high - low - MARGIN).relu() ** 2).sum() + REST * others.sum()).backward()
    f, _ = ACLSHeld(margin=MARGIN, top=2 * TOP, rest=2 * REST).smoothing(logits, labels)
    sign = -torch.ones_like(f).scatter_(1, predicted[:, None], -1.0)
    torch.testing.assert_close(z.grad, sign * f, atol=1e-12, rtol=0)
