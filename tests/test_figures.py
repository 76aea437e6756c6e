"""Reliability diagrams: what is drawn, how large, and what is refused."""

import struct
import sys

import pytest
import torch

from confide.core.errors import KnobError, MissingExtra
from confide.metrics.ece import ECE
from confide.report import figures
from confide.report.table import Spread
from confide.study.demo import Run

pytest.importorskip("matplotlib")


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


def test_svg_is_the_same_every_time_but_for_ids(tmp_path):
    path = tmp_path / "figure.svg"
    figures.reliability_diagrams([panel()], str(path))
    text = path.read_text(encoding="utf-8")
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
