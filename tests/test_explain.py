"""Every term fits one screen, and its numbers are right."""

import math
import sys

import pytest
import torch

from confide import ECE
from confide.cli.explain import find
from confide.cli.main import main
from confide.cli.terms import TERMS


def call(capsys, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["confide", "explain", *words])
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code or 0, *capsys.readouterr()


@pytest.mark.parametrize("name", TERMS)
def test_every_term_fits_one_screen(name, capsys, monkeypatch):
    code, out, err = call(capsys, monkeypatch, name)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) <= 22
    assert max(map(len, out.splitlines())) <= 80
    flat = " ".join(out.split())
    assert all(" ".join(part.split()) in flat for part in (TERMS[name].says, TERMS[name].trap, TERMS[name].use))


def test_terms_are_found_by_any_name(capsys, monkeypatch):
    assert find("ignore_index") is find("VOID") is TERMS["ignore-index"]
    assert find("Expected Calibration Error") is TERMS["ece"]
    code, out, err = call(capsys, monkeypatch, "temprature")
    assert (code, out) == (2, "")
    assert err == "confide: no term 'temprature'; did you mean Temperature? (confide explain lists all)\n"
    assert call(capsys, monkeypatch, "nope")[2] == "confide: no term 'nope' (confide explain lists all)\n"
    code, out, _ = call(capsys, monkeypatch)
    assert code == 0
    assert all(name in out for name in TERMS)


def test_the_chance_level_of_ece_is_as_stated():
    generator = torch.Generator().manual_seed(0)
    for n, low, high, runs in ((100, 0.08, 0.13, 100), (2000, 0.02, 0.03, 30)):
        for scale in (2, 5):
            total = 0.0
            for _ in range(runs):
                z = scale * torch.randn(n, 10, generator=generator)
                y = torch.multinomial(z.softmax(1), 1, generator=generator).squeeze(1)
                total += float(ECE(bins=15)(z, y))
            assert low < total / runs < high


def test_the_ceiling_of_a_second_softmax_is_as_stated():
    once = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    assert float(once.softmax(1).max()) == pytest.approx(math.e / (math.e + 3))
