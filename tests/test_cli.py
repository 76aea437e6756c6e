"""The `confide` command as its users meet it, and the numbers behind what it shows."""

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from confide.cli import app as options
from confide.cli import demo as demo_page
from confide.cli.console import FANCY, PLAIN
from confide.cli.main import main
from confide.cli.plot import Plot, draw
from confide.core.knobs import knobs_of
from confide.losses import ALL
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.label_smoothing import LabelSmoothing
from confide.losses.mbls import MbLS
from confide.report.curves import curve
from confide.study import demo

# Typer colours for a CI service even into a pipe.
PIPED = {k: v for k, v in os.environ.items() if k not in ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS")}


def call(capsys, monkeypatch, *words, columns=80):
    """Run the command in this process: exit code, stdout, stderr."""
    monkeypatch.setattr(sys, "argv", ["confide", *words])
    monkeypatch.setenv("COLUMNS", str(columns))
    for name in ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code or 0, *capsys.readouterr()


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=PIPED, timeout=60)
    return done.returncode, done.stdout, done.stderr


HELP = """
import sys, time
start = time.process_time()
{front}
sys.argv = ["confide", "--help"]
from confide.cli.main import main
try:
    main()
except SystemExit as stop:
    assert not stop.code
print("torch" in sys.modules, "matplotlib" in sys.modules, time.process_time() - start < 1)
"""
# The package without what its front door imports.
BARE = """
import importlib.util, types
package = types.ModuleType("confide")
package.__path__ = list(importlib.util.find_spec("confide").submodule_search_locations)
sys.modules["confide"] = package
"""


def test_the_command_line_alone_needs_no_torch_for_help():
    code, out, err = python(HELP.format(front=BARE))
    assert code == 0, err
    assert out.splitlines()[-1] == "False False True"
    assert "confide show acls" in out


def test_help_loads_no_torch():
    code, out, err = python(HELP.format(front=""))
    assert code == 0, err
    assert out.splitlines()[-1] == "False False True"


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_the_extra_the_command_says_which_one(package, capsys, monkeypatch):
    for name in [n for n in sys.modules if n.startswith("confide.cli.") and n != "confide.cli.main"]:
        monkeypatch.delitem(sys.modules, name)
    for name in [package, *(n for n in sys.modules if n.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    code, out, err = call(capsys, monkeypatch, "methods")
    assert (code, out) == (2, "")
    assert err == f"confide: this needs {package}, not installed here: pip install 'confide[cli]'\n"


def test_version(capsys, monkeypatch):
    code, out, _ = call(capsys, monkeypatch, "--version")
    assert code == 0
    assert re.fullmatch(r"confide (\d+\.\d+\S*|\(not installed\))\n", out)


@pytest.mark.parametrize("columns", [80, 120])
def test_methods_lists_everything_and_cuts_nothing(columns, capsys, monkeypatch):
    code, out, _ = call(capsys, monkeypatch, "methods", columns=columns)
    assert code == 0
    assert "…" not in out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= columns
    flat = " ".join(out.split())
    for method in ALL:
        entry = re.split(rf"^{method.__name__}\s", out, flags=re.MULTILINE)[1]
        words = set(entry.split())
        assert set(method.card.summary.split()) <= words
        assert set(method.card.group.split()) <= words
        assert set(method.card.cite.split()) <= words
        assert all(f"{name} {knob.default}" in flat for name, knob in knobs_of(method).items())


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("columns", [80, 120])
def test_show_prints_the_whole_card(method, columns, capsys, monkeypatch):
    code, out, _ = call(capsys, monkeypatch, "show", method.__name__.lower(), columns=columns)
    assert code == 0
    assert max(map(len, out.splitlines())) <= columns
    card, words = method.card, set(out.split())
    for text in (card.title, card.cite, card.group, card.formula, card.summary, card.differs):
        assert set(text.split()) <= words
    for name, knob in knobs_of(method).items():
        assert {name, str(knob.default), *knob.range.split(), *knob.doc.split()} <= words
    assert f"docs/methods/{method.__name__}.md" in words
    assert ("changes nothing" in out) == card.invariant or "changes nothing" in card.differs
    assert ("The gradient of a row does not sum to zero" in " ".join(out.split())) != card.balanced


def test_show_takes_dashes_and_underscores(capsys, monkeypatch):
    code, out, _ = call(capsys, monkeypatch, "show", "Label-Smoothing")
    assert code == 0
    assert out.startswith("LabelSmoothing")


def test_show_suggests_a_name(capsys, monkeypatch):
    code, out, err = call(capsys, monkeypatch, "show", "mbl")
    assert (code, out) == (2, "")
    assert err == "confide: no method 'mbl'; did you mean MbLS? (confide methods lists all)\n"


def test_show_admits_that_nothing_is_near(capsys, monkeypatch):
    code, _, err = call(capsys, monkeypatch, "show", "qqq")
    assert code == 2
    assert err == "confide: no method 'qqq' (confide methods lists all)\n"


def test_curve_of_mbls_is_strength_over_classes_beyond_the_margin():
    lines = curve(MbLS(margin=6.0, strength=0.2, over="mean"))
    for d, f, acts, on_top in zip(lines.distance, lines.other.f, lines.other.acts, lines.predicted.f, strict=True):
        assert f == pytest.approx(0.2 / 10 if d > 6 else 0.0, abs=1e-12)
        assert acts == (d > 6)
        assert on_top == pytest.approx(9 * f, abs=1e-12)


def test_curve_is_what_smoothing_says():
    criterion = MbLS(margin=6.0)
    lines = curve(criterion)
    z = torch.zeros(1, 10, dtype=torch.float64)
    z[0, 0] = lines.distance[300]
    f, acts = criterion.smoothing(z, torch.tensor([0]))
    assert (lines.predicted.f[300], lines.other.f[300]) == (f[0, 0].item(), f[0, 9].item())
    assert lines.predicted.acts[300] == bool(acts[0, 0])


def test_rest_is_where_the_label_is_reached():
    smooth = curve(LabelSmoothing(smoothing=0.1))
    assert smooth.confidence == pytest.approx(0.91, abs=1e-5)
    assert smooth.rest == pytest.approx(torch.tensor(0.91 / 0.01).log().item(), abs=1e-4)
    assert curve(MbLS(margin=6.0)).rest == pytest.approx(6.0, abs=1e-4)
    assert curve(CrossEntropy()).rest is None


@pytest.mark.parametrize("signs", [FANCY, PLAIN])
@pytest.mark.parametrize("y", [[0.0, 0.0, 1.0, 1.0], [-2.0, 0.0, 0.0, 3.0], [0.0] * 4, [-1.0, -1.0, -2.0, -3.0]])
def test_a_plot_is_a_rectangle_with_an_unbroken_line(signs, y):
    text = draw(Plot("f", [0.0, 1.0, 2.0, 3.0], y, [False, False, True, True], width=20), signs)
    lines = text.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines) == 8 + 3
    plane = [line[-20:] for line in lines[1:9]]
    assert all(any(row[column] != " " for row in plane) for column in range(20))
    assert lines[9].count(signs.thick) == 10
    assert (text.isascii()) == (signs is PLAIN)


def test_ascii_terminals_get_ascii():
    code = "import sys; sys.argv = ['confide', 'show', 'acls']; from confide.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=PIPED | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert b"*****" in done.stdout


def test_help_shows_the_defaults_of_the_study():
    assert len(demo.SEEDS) == options.SEEDS
    assert demo.SETTING.epochs == options.EPOCHS


def first(part, rows):
    return replace(part, inputs=part.inputs[:rows], targets=part.targets[:rows])


def test_demo_trains_prints_and_draws(tmp_path, capsys, monkeypatch):
    split = demo_page.fashion.load()
    few = replace(split, train=first(split.train, 64), test=first(split.test, 200))
    monkeypatch.setattr(demo_page.fashion, "load", lambda: few)
    picture, threads = tmp_path / "demo.png", torch.get_num_threads()
    code, out, _ = call(capsys, monkeypatch, "demo", "--seeds", "2", "--epochs", "1", "--output", str(picture))
    assert code == 0
    assert all(re.search(rf"^{name}( +\d+\.\d+ ± \d+\.\d+){{3}}$", out, re.MULTILINE) for name in demo.CONTENDERS)
    assert f"Reliability diagrams: {picture}" in out
    assert "\x1b" not in out
    assert picture.stat().st_size > 10_000
    assert torch.get_num_threads() == threads


def test_demo_refuses_a_bad_output_before_it_trains(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo_page.demo, "run", lambda *_, **__: pytest.fail("trained"))
    code, _, err = call(capsys, monkeypatch, "demo", "--output", str(tmp_path / "demo.jpg"))
    assert code == 2
    assert "the file name must end in .png or .svg" in err
    code, _, err = call(capsys, monkeypatch, "demo", "--output", str(tmp_path / "missing" / "demo.png"))
    assert code == 2
    assert "there is no folder" in err


def test_demo_refuses_no_seeds(capsys, monkeypatch):
    assert call(capsys, monkeypatch, "demo", "--seeds", "0")[0] == 2
