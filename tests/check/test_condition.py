"""The language of --fail-if."""

import pytest

from confide.core.errors import InputError, KnobError
from confide.report.check.condition import parse

VALUES = {"ece": 0.05, "ece_low": 0.04, "accuracy": 0.9, "mce": None}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("ece > 0.03", True),
        ("ece>5%", False),
        ("ece >= 5 %".replace(" %", "%"), True),
        ("0.03 < ece", True),
        ("ece_low <= 4e-2", True),
        ("ece_low < .04", False),
        ("ece > 0.1 or accuracy < 0.95", True),
        ("ece > 0.01 and accuracy > 0.95", False),
        ("ece > 0.1 and accuracy > 0 or ece < 0.06", True),  # and binds closer
        ("ece_low < ece", True),
        ("accuracy > -1", True),
    ],
)
def test_it_means_what_it_says(text, holds):
    assert parse(text).holds(VALUES) is holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ece",
        "ece >",
        "> 3",
        "ece == 3",
        "ece > 3 3",
        "ece > 3 and",
        "__import__('os')",
        "ece > 3; 1",
        "1 > ece > 0",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(KnobError, match=r"is not understood at .*: write NAME < <= > or >= NUMBER"):
        parse(text)


def test_names_are_checked_and_missing_numbers_decide_nothing():
    with pytest.raises(KnobError, match="knows no 'acuracy', did you mean accuracy"):
        parse("acuracy > 0").holds(VALUES)
    with pytest.raises(InputError, match="give no mce"):
        parse("mce > 0").holds(VALUES)
