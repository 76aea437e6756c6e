"""A public name appears or disappears only in a visible diff, and nothing is half-added."""

import ast
from pathlib import Path

import pytest

import confide
from confide import losses, metrics

HERE = Path(__file__).parent
LISTED = (HERE / "public_names.txt").read_text().split()
ROOMS = {losses: "loss", metrics: "metric"}
WRAPPERS = {"MeanOver"}  # made from another metric


def defined_in(room, contract):
    """Public classes of the files in a room that derive from its contract, by reading the files."""
    files = [file for file in Path(room.__file__).parent.glob("*.py") if file.stem != contract]
    for node in (node for file in files for node in ast.parse(file.read_text()).body):
        if isinstance(node, ast.ClassDef) and any(contract.capitalize() in ast.unparse(b) for b in node.bases):
            yield node.name


def test_public_names_are_the_listed_ones():
    assert confide.__all__ == LISTED == sorted(LISTED)
    assert set(LISTED) <= set(dir(confide))
    assert {name for name in LISTED if not isinstance(getattr(confide, name), type)} == {"compare"}


def test_what_type_checkers_see_is_what_there_is():
    seen = {}
    for node in ast.walk(ast.parse(Path(confide.__file__).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("confide."):
            seen |= {alias.asname: node.module.removeprefix("confide.") for alias in node.names}
    assert seen == confide._HOMES


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Mbls'; it offers ACLS"):
        confide.Mbls  # noqa: B018


def test_every_class_in_a_room_is_in_all_and_public():
    for room, contract in ROOMS.items():
        names = set(defined_in(room, contract)) - WRAPPERS
        assert names == {kind.__name__ for kind in room.ALL}
        assert all(getattr(room, name) in room.ALL for name in names)


def test_losses_and_the_usual_metrics_are_at_the_front_door():
    usual = {"Accuracy", "AdaptiveECE", "ClasswiseECE", "ECE", "NLL"}  # the other names belong to losses
    assert {kind.__name__ for kind in losses.ALL} | usual <= set(LISTED)
    assert all(getattr(confide, name) is getattr(metrics, name) for name in usual)


def test_version_is_the_packages():
    project = (HERE.parents[1] / "pyproject.toml").read_text()
    assert f'version = "{confide.__version__}"' in project
    assert f"## {confide.__version__}" in (HERE.parents[1] / "CHANGELOG.md").read_text()
