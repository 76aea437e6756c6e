"""Every metric in ALL, with settings that change what it computes, through the whole suite."""

import warnings
from functools import partial

import pytest

from confide.metrics import ALL, AUPR, AUROC, ECE, FPR95, HD95, Accuracy, AdaptiveECE, Brier, Dice, KernelCE, MeanOver
from confide.testing import METRIC_CHECKS


def mean_over(over="image", weighted=False, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MeanOver(ECE(**options), over=over, weighted=weighted)


MAKES = [
    *ALL,
    partial(Accuracy, top=2),
    partial(AdaptiveECE, ties="released"),
    partial(Brier, bins=15),
    partial(AUROC, score="entropy"),
    partial(AUPR, positive="sure", score="margin"),
    partial(FPR95, at="closest", positive="unsure"),
    partial(KernelCE, biased=True),
    partial(Dice, background=False),
    mean_over,
    partial(mean_over, weighted=True),
]


def name(make):
    return f"{make.func.__name__}{make.keywords}" if isinstance(make, partial) else make.__name__


@pytest.mark.parametrize("check", METRIC_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", MAKES, ids=name)
def test_conforms(make, check):
    if make is HD95:
        pytest.importorskip("monai")
    if check.__name__ in make().exempt:  # an exemption is for what really cannot hold
        with pytest.raises(AssertionError):
            check(make)
    else:
        check(make)
