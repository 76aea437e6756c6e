"""Every loss in ALL, in every variant, through the whole suite."""

import pytest

from confide.losses import ALL
from confide.testing import LOSS_CHECKS, describe, variants

MAKES = [make for kind in ALL for make in variants(kind)]


@pytest.mark.parametrize("check", LOSS_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", MAKES, ids=describe)
def test_conforms(make, check):
    check(make)
