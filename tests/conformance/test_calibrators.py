"""Every calibrator in ALL through the whole suite."""

import ast
from pathlib import Path

import pytest

from confide import posthoc
from confide.posthoc import ALL, Calibrator
from confide.testing import CALIBRATOR_CHECKS


@pytest.mark.parametrize("check", CALIBRATOR_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_conforms(kind, check):
    if check.__name__ not in kind.card.exempt:
        check(kind)
    else:  # an exemption is for what really cannot hold
        with pytest.raises((AssertionError, ValueError)):
            check(kind)


def test_exemptions_name_checks_and_reasons():
    names = {check.__name__ for check in CALIBRATOR_CHECKS}
    for kind in ALL:
        assert set(kind.card.exempt) <= names
        assert all(len(reason) > 20 for reason in kind.card.exempt.values())


def test_every_class_in_the_room_is_in_all_and_final():
    files = Path(posthoc.__file__).parent.glob("*.py")
    nodes = [node for file in files for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef)]
    assert {n.name for n in nodes if "Calibrator" in map(ast.unparse, n.bases)} == {kind.__name__ for kind in ALL}
    assert all(kind.__bases__ == (Calibrator,) for kind in ALL)
    assert all(not kind.__subclasses__() for kind in ALL)
