"""Plainness is tested: small files, small functions, shallow inheritance."""

import ast
import statistics
from pathlib import Path

import confide

FILES = sorted(Path(confide.__file__).parent.rglob("*.py"))


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def length(node):
    documented = ast.get_docstring(node, clean=False)
    return node.end_lineno - node.lineno + 1 - (documented.count("\n") + 1 if documented else 0)


def test_files_are_small():
    long = {file.name: size for file in FILES if (size := len(file.read_text().splitlines())) > 250}
    assert not long


def test_functions_are_small():
    lengths = {f"{f.name}:{node.name}": length(node) for f in FILES for node in functions(ast.parse(f.read_text()))}
    assert not {name: size for name, size in lengths.items() if size > 40}
    assert statistics.median(lengths.values()) < 10


def test_every_file_says_what_it_is():
    silent = [f for f in FILES if f.read_text().strip() and not ast.get_docstring(ast.parse(f.read_text()))]
    assert not silent


def test_losses_are_final():
    from confide.losses import ALL
    from confide.losses.loss import Loss

    assert all(kind.__bases__ == (Loss,) for kind in ALL)
    assert all(not kind.__subclasses__() for kind in ALL)
