"""Reliability diagrams: what is drawn, how large, and what is refused. The demo's table and its verdict."""

import struct
import sys

import pytest
import torch

from confide.core.errors import KnobError, MissingExtra
from confide.metrics.ece import ECE
from confide.report import figures
from confide.report.table import Row, Spread, tabulate, verdict
from confide.study.demo import Run


def measured(sharpness, rows=500, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(rows, 10, generator=generator) * 2
    y = torch.multinomial(z.softmax(1), 1, generator=generator)[:, 0]
    return z * sharpness, y


def panel(name="one", sharpness=1.0):
    metric = ECE()
    metric.update(*measured(sharpness))
    return figures.Panel.of(name, metric)


def size(path):
    return struct.unpack(">II", path.read_bytes()[16:24])


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_png_grows_with_its_panels(columns, tmp_path):
    path = tmp_path / "figure.png"
    figures.reliability_diagrams([panel(f"method {n}", 1 + n) for n in range(columns)], path)
    width, height = size(path)
    assert width == 310 * columns + 50
    assert 480 <= height <= 560
    assert path.stat().st_size > 5_000


def test_svg_is_the_same_every_time(tmp_path):
    first, second = tmp_path / "figure.svg", tmp_path / "again.svg"
    for path in (first, second):
        figures.reliability_diagrams([panel()], str(path))
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text(encoding="utf-8")
    assert text.startswith("<?xml")
    assert "<dc:date>" not in text


def test_drawing_changes_no_global_style(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    figures.reliability_diagrams([panel()], tmp_path / "figure.png")
    assert dict(matplotlib.rcParams) == before


def test_bars_are_the_bins_and_empty_ones_stay_blank():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    shown = panel()
    figures._diagram(axes, shown)
    filled = [item for item in shown.bins if item["count"]]
    assert 0 < len(filled) < len(shown.bins)
    assert len(axes.patches) == 2 * len(filled)
    for item, bar, gap in zip(filled, axes.patches[::2], axes.patches[1::2], strict=True):
        assert bar.get_x() == pytest.approx(item["lower"])
        assert bar.get_height() == pytest.approx(item["accuracy"])
        assert gap.get_y() + gap.get_height() == pytest.approx(item["confidence"])


def test_panels_pool_the_bars_and_average_the_ece():
    runs = [Run(name, seed, *measured(s, seed=seed)) for seed in (0, 1) for name, s in (("a", 1.0), ("b", 3.0))]
    first, second = figures.panels(runs)
    assert (first.title, second.title) == ("a", "b")
    assert sum(item["count"] for item in first.bins) == 1000
    each = []
    for seed in (0, 1):
        metric = ECE()
        metric.update(*measured(3.0, seed=seed))
        each.append(metric.compute())
    assert second.ece == Spread.of(each)


@pytest.mark.parametrize("name", ["figure.jpg", "figure", "nowhere/figure.png"])
def test_paths_that_cannot_be_drawn_are_refused(name, tmp_path):
    with pytest.raises(KnobError, match="cannot draw"):
        figures.reliability_diagrams([panel()], tmp_path / name)


def test_nothing_to_draw_is_refused(tmp_path):
    with pytest.raises(KnobError, match="no panel"):
        figures.reliability_diagrams([], tmp_path / "figure.png")


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"this needs matplotlib, .* pip install 'confide\[plots\]'"):
        figures.reliability_diagrams([panel()], tmp_path / "figure.png")


def row(method, ece, accuracy=(0.8, 0.01), seeds=3):
    return Row(method, seeds, Spread(*accuracy), Spread(0.5, 0.01), Spread(*ece))


def test_verdict_on_a_gain():
    rows = [row("CE", (0.09, 0.01)), row("LS", (0.05, 0.01)), row("MbLS", (0.03, 0.01))]
    assert verdict(rows) == (
        "MbLS has the lowest ECE, 3.0% instead of CE's 9.0%, with an accuracy that is the same within the spread over "
        "seeds (80.0% instead of 80.0%)."
    )


def test_verdict_tells_what_a_gain_costs():
    rows = [row("CE", (0.09, 0.01)), row("LS", (0.05, 0.01), (0.70, 0.01))]
    assert verdict(rows).endswith("instead of CE's 9.0%, at the cost of accuracy (70.0% instead of 80.0%).")


def test_verdict_on_no_change():
    rows = [row("CE", (0.050, 0.01)), row("LS", (0.045, 0.01))]
    assert verdict(rows) == (
        "Nothing was clearly gained: the lowest ECE, 4.5% with LS, lies within the spread over seeds of CE's 5.0%."
    )


def test_verdict_when_all_are_worse():
    rows = [row("CE", (0.03, 0.01)), row("LS", (0.08, 0.01)), row("MbLS", (0.05, 0.01))]
    assert verdict(rows) == "Nothing was gained: no method has a lower ECE than CE (3.0%); the nearest, MbLS, has 5.0%."


def test_verdict_on_one_seed_warns():
    rows = [row("CE", (0.09, None), (0.8, None), 1), row("LS", (0.05, None), (0.8, None), 1)]
    assert verdict(rows).endswith("; one seed cannot tell this from chance.")


def test_verdict_on_one_method():
    assert verdict([row("CE", (0.03, 0.01))]) == "CE alone: there is nothing to compare it with."


def test_table_is_mean_and_sample_deviation():
    y = torch.tensor([0, 1, 1, 0])
    z = torch.tensor([[3.0, 0.0], [0.0, 3.0], [0.0, 3.0], [0.0, 3.0]])
    runs = [Run("CE", 0, z, y), Run("LS", 0, z, 1 - y), Run("CE", 1, z, torch.tensor([0, 1, 1, 1]))]
    first, second = tabulate(runs)
    assert (first.method, first.seeds, second.method, second.seeds) == ("CE", 2, "LS", 1)
    assert first.accuracy.mean == pytest.approx(0.875)
    assert first.accuracy.sd == pytest.approx(0.125 * 2**0.5)
    assert (second.accuracy.mean, second.accuracy.sd) == (0.25, None)
    metric = ECE()
    metric.update(z, 1 - y)
    assert second.ece.mean == metric.compute()
