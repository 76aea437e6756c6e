"""The rows of the ACLS paper's Table 2 for FLSD and CPC: the printed ones do not hold, those from the losses do."""

import math

import pytest
from papers import log_softmax
from test_table2 import CLASSES, check, check_eq8, entries, rows

from confide.losses import CPC, FocalSD


def test_eq8():
    check_eq8(FocalSD())
    check_eq8(CPC())


def smoothings(criterion):
    """f, class, logits, label and predicted class of every entry; C is 1 in all of them."""
    logits, labels, _ = rows()
    found = criterion.smoothing(logits, labels)
    assert (found.C == 1).all()
    for n, j, z, y, p in entries():
        yield float(found.f[n, j]), j, z, y, p


# FLSD


def focal_gradient_factor(p, gamma):
    """g: the gradient of a focal loss is g (p - q)."""
    return (1 - p) ** gamma - gamma * p * (1 - p) ** (gamma - 1) * math.log(p)


def flsd(j, z, y, p, gamma_by):
    probability = [math.exp(x) for x in log_softmax(z)]
    g = focal_gradient_factor(probability[y], 5.0 if probability[gamma_by] < 0.2 else 3.0)
    lowered = (1 - probability[y]) * (1 - g) if j == y else -probability[j] * (1 - g)
    return lowered if j == p else -lowered


def test_flsd_row():
    check(FocalSD(), lambda j, z, y, p: flsd(j, z, y, p, gamma_by=y), lambda *_: True)


def test_flsd_softens_by_no_constant():
    """Printed: two constants. They vary, and where the true class is improbable its label is raised above 1."""
    raised = [-f if j == p else f for f, j, _, y, p in smoothings(FocalSD()) if j == y]
    assert min(raised) < -0.1 < 0.1 < max(raised)


def test_flsd_chooses_gamma_by_the_true_class():
    """Not by the predicted one, as S-Eq. 1 has it: on rows that are wrong that would give other labels."""
    off = [(p == y, abs(f - flsd(j, z, y, p, gamma_by=p)) > 1e-3) for f, j, z, y, p in smoothings(FocalSD()) if j == p]
    assert any(differs for right, differs in off if not right)
    assert not any(differs for right, differs in off if right)


# CPC


def ratio(z, a, b):
    """p_a / (p_a + p_b)."""
    return 1 / (1 + math.exp(z[b] - z[a]))


PAIRS, REST = 0.5, 2.0
ONE, LEVEL = PAIRS / (CLASSES - 1), REST / (2 * (CLASSES - 1) * (CLASSES - 2))  # lambda_1 and lambda_2, normalised


def cpc(j, z, y, p, sign):
    """The row with this sign before the first term of the classes that are not true."""
    if j == y:
        f = -ONE * sum(ratio(z, k, y) for k in range(CLASSES) if k != y)
        return f if j == p else -f
    level = sum(ratio(z, k, j) - ratio(z, j, k) for k in range(CLASSES) if k != y)
    f = sign * ONE * ratio(z, j, y) + LEVEL * level
    return -f if j == p else f


def test_cpc_row():
    """The constraint on true against other sharpens on both sides; only the one among the others softens."""
    check(CPC(pairs=PAIRS, rest=REST), lambda *entry: cpc(*entry, sign=-1), lambda *_: True)


def test_cpc_row_as_printed_has_a_sign_wrong():
    """Right for the true class, wrong for every other one."""
    for f, j, z, y, p in smoothings(CPC(pairs=PAIRS, rest=REST)):
        printed = cpc(j, z, y, p, sign=1)
        if j == y:
            assert f == pytest.approx(printed, abs=1e-12)
        else:
            assert abs(f - printed) == pytest.approx(2 * ONE * ratio(z, j, y), abs=1e-12)


def test_true_against_other_never_softens():
    for f, j, _, y, p in smoothings(CPC(pairs=1.0, rest=0.0)):
        raised = -f if j == p else f  # what the label gains
        assert raised > 0 if j == y else raised < 0
