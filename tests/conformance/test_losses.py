"""Every loss in ALL, in every variant, through the whole suite."""

import pytest

from confide.losses import ALL
from confide.testing import LOSS_CHECKS, describe, variants

MAKES = [make for kind in ALL for make in variants(kind)]


@pytest.mark.parametrize("check", LOSS_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", MAKES, ids=describe)
def test_conforms(make, check):
    if check.__name__ not in make().traits.exempt:
        check(make)
    else:  # an exemption is for what really cannot hold
        with pytest.raises((AssertionError, ValueError)):
            check(make)


def test_exemptions_name_checks_and_reasons():
    names = {check.__name__ for check in LOSS_CHECKS}
    for make in MAKES:
        assert set(make().traits.exempt) <= names
        assert all(len(reason) > 20 for reason in make().traits.exempt.values())
