"""`confide show --compare` and `--save`, the curves behind them, and the pictures."""

import re
import struct
import sys

import pytest
import torch

from confide import ACLS, DCA, MDCA, CrossEntropy, Focal, LabelRelaxation, LabelSmoothing, MbLS
from confide.cli import card, compare
from confide.cli.main import main
from confide.core.errors import InputError, KnobError, MissingExtra
from confide.losses import ALL
from confide.report import curve_figures, curves
from confide.report.curves import ALONE, BORDER, CLASSES, CROWD, RIGHT, WRONG, curve

NAMES = [kind.__name__ for kind in ALL]
CHUNKS = [NAMES[i : i + 6] for i in range(0, len(NAMES), 6)]
CHUNKS = [chunk if len(chunk) > 1 else [NAMES[0], *chunk] for chunk in CHUNKS]


def call(capsys, monkeypatch, *words, columns=80):
    monkeypatch.setattr(sys, "argv", ["confide", "show", *map(str, words)])
    monkeypatch.setenv("COLUMNS", str(columns))
    for name in ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code or 0, *capsys.readouterr()


def size(path):
    return struct.unpack(">II", path.read_bytes()[16:24])


# The curves


def test_the_penalty_is_the_posters_line_and_its_slope_is_f():
    lines = curve(MbLS(margin=6.0, strength=0.2))
    for d, penalty in zip(lines.distance, lines.penalty, strict=True):
        assert penalty == pytest.approx(0.2 * 0.9 * max(0.0, d - 6), abs=1e-12)
    for criterion in (MbLS(), ACLS(), LabelSmoothing(), Focal(), LabelRelaxation()):
        lines = curve(criterion)
        step = lines.distance[1]
        slopes = [(b - a) / (2 * step) for a, b in zip(lines.penalty, lines.penalty[2:], strict=False)]
        for slope, f in zip(slopes[1:], lines.predicted.f[2:], strict=False):
            assert slope == pytest.approx(f, abs=0.05)


def test_a_batch_is_overconfident_where_confidence_passes_its_accuracy():
    lines = curve(MDCA())
    z, y = CROWD.batch(torch.tensor([3.0], dtype=torch.float64))
    assert len(z) == len(y) == RIGHT + WRONG == 45
    assert (z.argmax(1) == y).double().mean() == pytest.approx(0.8)
    assert torch.equal(y.bincount(minlength=CLASSES), torch.tensor([36] + [1] * 9))
    for d, f in zip(lines.distance, lines.predicted.f, strict=True):
        p = curves.confidence(d)
        wanted = (2 if p > 0.8 else -2) * 0.1 * p * (1 - p)  # f of methods.md 1.10, with lambda over C
        assert f == pytest.approx(wanted, abs=1e-9)
    flat = curve(DCA())
    assert flat.penalty[100] == pytest.approx(abs(curves.confidence(flat.distance[100]) - 0.8))


def test_a_border_has_three_neighbours_of_another_class():
    z, y = BORDER.batch(torch.tensor([3.0, 4.0]))
    assert (z.shape, y.shape) == ((2, CLASSES, 3, 3), (2, 3, 3))
    assert y[0].flatten().tolist() == [0, 0, 1] * 3
    assert torch.equal(z[:, :, 1, 1], ALONE.batch(torch.tensor([3.0, 4.0]))[0])


def test_the_curve_leaves_the_loss_as_it_was():
    criterion = MbLS(validate="always")
    before = (repr(criterion), criterion._batches[0])
    curve(criterion)
    assert (repr(criterion), criterion._batches[0]) == before


def test_rest_is_where_the_pull_turns_and_not_where_it_fades():
    assert curve(MbLS(margin=6.0)).rest == pytest.approx(6.0, abs=1e-6)
    assert curve(LabelRelaxation(alpha=0.1)).confidence == pytest.approx(0.9, abs=1e-6)
    assert curve(Focal()).rest is None
    assert curve(CrossEntropy()).rest is None


@pytest.mark.parametrize("kind", ALL, ids=NAMES)
def test_every_method_has_a_curve_of_finite_numbers(kind):
    lines = curves.curve_of(kind)
    assert not isinstance(lines, str)
    numbers = [*lines.predicted.f, *lines.other.f, *lines.first.f, *lines.penalty, lines.confidence]
    assert torch.tensor(numbers).isfinite().all()
    assert {len(side.f) for side in (lines.predicted, lines.first, lines.other)} == {len(lines.distance)}
    assert bool(lines.scene.words) == (kind.card.coupled or kind.card.spatial)


# The terminal


@pytest.mark.parametrize("names", CHUNKS, ids=lambda names: names[0])
def test_compare_prints_every_method_at_80_columns(names, capsys, monkeypatch):
    code, out, _ = call(capsys, monkeypatch, "--compare", *names)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    assert "\x1b" not in out
    for name in names:
        assert len(re.findall(rf"^{name} ", out, re.MULTILINE)) == 3  # f on the predicted class, on another, and rest


def test_compare_puts_the_numbers_of_the_losses_side_by_side(capsys, monkeypatch):
    _, out, _ = call(capsys, monkeypatch, "--compare", "mbls", "ACLS", "label-smoothing", "mdca")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if len(line.split()) == 9}
    assert rows["d"] == ["1", "2", "4", "6", "8", "10", "15", "20"]
    assert rows["confidence"][:3] == ["0.232", "0.451", "0.858"]
    assert rows["LabelSmoothing"] == ["0.005"] * 8  # the later table, another class
    assert rows["MbLS"] == ["·"] * 6 + ["0.010"] * 2
    assert rows["ACLS"] == ["·"] * 4 + ["0.020", "0.040", "0.090", "0.140"]
    assert "MDCA: Each point stands for a batch" in out
    assert re.search(r"^MbLS +10\.00 +confidence 0\.9996$", out, re.MULTILINE)
    assert re.search(r"^MDCA +past 20 *$", out, re.MULTILINE)


def test_compare_in_ascii(monkeypatch):
    from confide.cli.console import PLAIN

    lines = curve(MbLS())
    assert set(compare._values(lines.other, lines, PLAIN)) == {".", "0.010"}


def test_show_says_what_is_around_the_prediction(capsys, monkeypatch):
    for name, said in (("mdca", CROWD.words), ("acls", "The lowest logit (the first of equals) is treated apart")):
        _, out, _ = call(capsys, monkeypatch, name)
        assert said in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mbls", "acls"), "show explains one method; for several write confide show --compare mbls acls"),
        (("--compare", "mbls"), "--compare needs two methods or more, such as confide show --compare mbls crossent"),
        (("--compare", "mbls", "MBLS"), "--compare needs two methods or more"),
        (("--compare", "acls", "mbl"), "no method 'mbl'; did you mean MbLS?"),
        (("--compare", *NAMES[:9], "--save", "x.png"), "one picture has room for 8 methods, not for 9"),
        (("mbls", "--save", "x.jpg"), "the file name must end in .png or .svg"),
        (("--compare", "mbls", "acls", "--save", "nowhere/x.png"), "there is no folder 'nowhere'"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_any_work(words, said, capsys, monkeypatch):
    monkeypatch.setattr(compare, "curve_of", lambda _: pytest.fail("worked"))
    monkeypatch.setattr(card, "curve_of", lambda _: pytest.fail("worked"))
    code, out, err = call(capsys, monkeypatch, *words)
    assert (code, out) == (2, "")
    assert said in err


def test_a_method_without_a_curve_gets_a_sentence(capsys, monkeypatch, tmp_path):
    def blind(self, rows, **side):
        raise InputError("this loss wants an image")

    monkeypatch.setattr(MbLS, "context", blind)
    code, out, _ = call(capsys, monkeypatch, "mbls")
    assert code == 0
    assert "It has no curve: this loss wants an image." in out
    code, _, err = call(capsys, monkeypatch, "mbls", "--save", tmp_path / "x.png")
    assert (code, err) == (2, "confide: MbLS has no curve to draw: this loss wants an image\n")
    code, out, _ = call(capsys, monkeypatch, "--compare", "mbls", "acls", "--save", tmp_path / "x.png")
    assert code == 0
    assert "MbLS has no curve: this loss wants an image." in out
    assert (tmp_path / "x.png").is_file()
    monkeypatch.setattr(ACLS, "context", blind)
    assert call(capsys, monkeypatch, "--compare", "mbls", "acls", "--save", tmp_path / "y.png")[0] == 2


# The pictures


@pytest.mark.parametrize("kind", ALL, ids=NAMES)
def test_show_saves_a_picture_of_every_method(kind, tmp_path, capsys, monkeypatch):
    path = tmp_path / "curves.png"
    code, out, _ = call(capsys, monkeypatch, kind.__name__, "--save", path)
    assert code == 0
    assert f"Curves: {path}" in out
    width, height = size(path)
    assert width == 1180
    assert 350 < height < 500
    assert path.stat().st_size > 10_000


def test_compare_saves_one_picture_that_grows_with_its_methods(tmp_path, capsys, monkeypatch):
    sizes = []
    for number, names in enumerate((["mbls", "acls"], ["mbls", "acls", "mdca"], NAMES[:8])):
        path = tmp_path / f"{number}.png"
        assert call(capsys, monkeypatch, "--compare", *names, "--save", path)[0] == 0
        sizes.append(size(path)[0])
    assert sizes == [100 + 310 * n for n in (2, 3, 8)]


def test_an_svg_is_the_same_every_time(tmp_path):
    first, second = tmp_path / "curves.svg", tmp_path / "again.svg"
    for path in (first, second):
        curve_figures.draw({"MbLS": curve(MbLS())}, str(path))
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text(encoding="utf-8")
    assert text.startswith("<?xml")
    assert "<dc:date>" not in text


def panels(drawn, monkeypatch, tmp_path):
    """The axes of a picture, instead of its file."""
    kept = []
    monkeypatch.setattr(curve_figures, "save", lambda figure, path: kept.append(figure))
    curve_figures.draw(drawn, tmp_path / "x.png")
    return kept[0].axes


def test_the_picture_holds_the_curves(tmp_path, monkeypatch):
    lines = curve(ACLS())
    penalty, predicted, other = panels({"ACLS": lines}, monkeypatch, tmp_path)
    drawn = {tuple(line.get_ydata()) for line in other.lines}
    assert {lines.other.f, lines.first.f} <= drawn
    assert lines.predicted.f in {tuple(line.get_ydata()) for line in predicted.lines}
    assert lines.penalty in {tuple(line.get_ydata()) for line in penalty.lines}
    (area,) = predicted.patches  # C = 1
    acts = [d for d, on in zip(lines.distance, lines.predicted.acts, strict=True) if on]
    assert (area.get_x(), area.get_x() + area.get_width()) == (pytest.approx(acts[0]), pytest.approx(acts[-1]))
    assert [axes.get_title(loc="left") for axes in (penalty, predicted, other)] == [
        "penalty",
        "f, predicted class",
        "f, another class",
    ]


def test_compared_methods_share_their_axes(tmp_path, monkeypatch):
    drawn = {kind.__name__: curve(kind.example()) for kind in (MbLS, ACLS, MDCA)}
    axes = panels(drawn, monkeypatch, tmp_path)
    assert [a.get_title() for a in axes[:3]] == ["MbLS", "ACLS", "MDCA"]
    for row in (axes[:3], axes[3:6], axes[6:]):
        assert len({a.get_ylim() for a in row}) == 1
        assert row[0].get_yscale() == "asinh"  # ACLS would flatten MDCA
        low, high = row[0].get_ylim()
        assert all(low <= value <= high for a in row for line in a.lines[:-1] for value in line.get_ydata())
    alike = panels(dict.fromkeys("ab", drawn["MbLS"]), monkeypatch, tmp_path)
    assert {a.get_yscale() for a in alike} == {"linear"}


def test_drawing_changes_no_global_style(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    curve_figures.draw({"MbLS": curve(MbLS())}, tmp_path / "x.png")
    assert dict(matplotlib.rcParams) == before


def test_nothing_or_too_much_to_draw_is_refused(tmp_path):
    lines = curve(MbLS())
    for number in (0, 9):
        with pytest.raises(KnobError, match=f"cannot draw {number} methods: one picture has room for 1 to 8"):
            curve_figures.draw({str(i): lines for i in range(number)}, tmp_path / "x.png")


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"this needs matplotlib, .* pip install 'confide\[plots\]'"):
        curve_figures.draw({"MbLS": curve(MbLS())}, tmp_path / "x.png")
