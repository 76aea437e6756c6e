"""The page, its figures and maps: their numbers are the document's, and nothing is fetched."""

import base64
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pytest
import torch

mpl.use("Agg")
from planted import call, images, rows, saved

import confide
from confide import plots
from confide.core.errors import InputError
from confide.report.check import numbers
from confide.report.check.markup import tag
from confide.report.check.page import page
from confide.report.check.pixels import png, ramp
from confide.report.check.svg import compact, draw, rising
from confide.report.check.words import measured

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
VILE = '</script><script>alert("x")</script>'


class Tables(HTMLParser):
    """Rows of cells, (what stands there, the number behind it), by the table's id or class."""

    def __init__(self, text):
        super().__init__()
        self.found, self.rows, self.cell = {}, [], None
        self.feed(text)

    def handle_starttag(self, name, attributes):
        attributes = dict(attributes)
        if name == "table":
            self.rows = self.found.setdefault(attributes.get("id") or attributes["class"], [])
        elif name == "tr":
            self.rows.append((attributes.get("data-key"), []))
        elif name == "td":
            self.cell = ["", attributes.get("data-v")]
            self.rows[-1][1].append(self.cell)

    def handle_endtag(self, name):
        if name == "td":
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell[0] += data


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """Two inputs with groups, and names that try to break out."""
    folder = tmp_path_factory.mktemp("check")
    site = np.array(["north", VILE, "few"])[np.r_[np.arange(3950) % 2, np.full(50, 2)]]
    names = np.array(["a", "b", VILE, "d", "e"])
    z, y = rows()
    for name, part in (("first.npz", z), ("second.npz", z / 2)):
        np.savez(folder / name, logits=part, labels=y, site=site, class_names=names)
    with pytest.MonkeyPatch.context() as patch:
        return _document(folder, patch)


def _document(folder, patch):
    words = ("check", folder / "first.npz", folder / "second.npz", "--group", "site", "--json", folder / "out.json")
    assert call(_Quiet(), patch, *words)[0] == 0
    return json.loads((folder / "out.json").read_text())


class _Quiet:
    def readouterr(self):
        return "", ""


def single(document):
    return document | {"checks": document["checks"][:1], "comparisons": []}


def agree(text, document):
    """Every number of the table is the document's, in full and as it is shown."""
    lines = dict(row for row in Tables(text).found["metrics"] if row[0])
    for metrics in zip(*(check["result"]["metrics"] for check in document["checks"]), strict=True):
        cells = lines[metrics[0]["key"]]
        assert cells[0][0] == metrics[0]["metric"]
        for number, metric in enumerate(metrics):
            value, span, chance = cells[1 + 3 * number : 4 + 3 * number]
            assert (value[0], float(value[1])) == (measured(metric["value"]), metric["value"])
            assert span[0] == f"{measured(metric['low'])} to {measured(metric['high'])}"
            if metric["chance"] is not None and metric["key"] != "signed_gap":
                assert (chance[0], float(chance[1])) == (measured(metric["chance"]), metric["chance"])


def test_its_numbers_are_those_of_the_json(document):
    for data in (document, single(document)):
        text = page(data)
        agree(text, data)
        embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1]
        assert json.loads(embedded) == data


def test_every_table_holds_what_the_document_holds(document):
    found = Tables(page(single(document))).found
    check = document["checks"][0]
    result = check["result"]
    classes = [row[1] for row in found["sortable classes"][1:]]
    assert [int(cells[0][1]) for cells in classes] == list(range(5))
    assert [float(cells[6][1]) for cells in classes] == [row["gap"] for row in result["classes"]]
    groups = [row[1] for row in found["sortable groups"][1:]]
    assert [float(cells[4][1]) for cells in groups] == [row["ece"]["value"] for row in result["groups"]]
    assert [cells[8][0] for cells in groups] == ["", "too few to judge", ""]
    misses = [row[1] for row in found["sortable misses"][1:]]
    assert [int(cells[0][0]) for cells in misses] == [row["row"] for row in check["misses"]]
    changes = dict(row for row in Tables(page(document)).found["changes"] if row[0])
    for change in document["comparisons"][0]["changes"]:
        assert float(changes[change["key"]][3][1]) == change["difference"]


def test_it_fetches_nothing_and_no_text_breaks_out(document):
    text = page(document)
    assert not re.search(r'(?:src|href)="(?!data:)|url\(|@import|<link|<iframe', text)
    assert text.count("<script") == 2
    assert VILE not in text
    assert len(text.encode()) < 3e6
    assert tag("p", "<b>", class_='"') == '<p class="&quot;">&lt;b&gt;</p>'


def test_thousands_of_classes_still_fit(document):
    check = document["checks"][0]
    line = check["result"]["classes"][1]
    rows = [line | {"class": k, "ece": (k * 7919 % 21_000) / 1e5} for k in range(21_000)]
    result = check["result"] | {"classes": rows, "classes_count": 21_000}
    text = page(document | {"checks": [check | {"result": result}] * 2})
    assert len(text.encode()) < 3e6
    listed = [int(cells[0][1]) for _, cells in Tables(text).found["sortable classes"] if cells][:1000]
    assert listed == sorted(sorted(range(21_000), key=lambda k: -rows[k]["ece"])[:1000])
    assert "the 1,000 of largest ECE; the JSON has all" in text


def test_what_is_drawn_is_what_was_computed(document):
    result = document["checks"][0]["result"]
    figure = numbers.reliability(result)
    held = [row for row in result["bins"] if row["count"]]
    assert [(b.count, b.confidence, b.accuracy, b.low, b.high) for b in figure.bars] == [
        tuple(row[key] for key in ("count", "confidence", "accuracy", "low", "high")) for row in held
    ]
    assert sum(bar.count for bar in figure.bars) == result["n"] == figure.total
    assert sum(abs(b.confidence - b.accuracy) * b.share for b in figure.bars) == pytest.approx(figure.ece, abs=1e-12)
    drawn = draw(figure)
    assert drawn.count('class="point"') == len(held)
    for row in held:
        assert f"{row['count']:,} predictions" in drawn
    shares = numbers.shares(result)
    assert sum(count for _, _, count, _ in shares.bars) == result["n"]
    assert shares.confidence == pytest.approx(shares.accuracy + result["verdict"]["gap"], abs=1e-12)
    assert draw(shares).count("<title>") == 60
    assert draw(numbers.risk_coverage(result)).count("<title>") == len(result["risk_coverage"])
    assert draw(numbers.groups(result)).count('class="mark faint"') == 1


def test_axes_end_on_round_numbers():
    for top in (1.0, 0.47, 0.06, 0.0199, 3e-5, 700.0):
        ticks = rising(top)
        assert ticks[0] == 0
        assert top * 0.999 <= ticks[-1] <= 2.1 * top
        assert len(ticks) <= 6
    assert [compact(n) for n in (7, 999, 1000, 9949, 9950, 123456, 2_500_000_000)] == [
        "7", "999", "1.0k", "9.9k", "10k", "123k", "2.5G",
    ]  # fmt: skip


def test_an_empty_and_a_tiny_input_still_make_a_page(tmp_path, capsys, monkeypatch):
    z, y = rows(8)
    np.savez(tmp_path / "tiny.npz", logits=z, labels=y)
    np.savez(tmp_path / "none.npz", logits=z, labels=np.full_like(y, 3))
    for words in (("tiny.npz",), ("none.npz", "--ignore-index", 3)):
        out = tmp_path / "out.html"
        code, _, error = call(capsys, monkeypatch, "check", tmp_path / words[0], *words[1:], "--report", out)
        assert code == 0, error
        assert out.read_text().startswith("<!doctype html>")


def test_figures_become_files(tmp_path, capsys, monkeypatch):
    code, _, error = call(capsys, monkeypatch, "check", saved(tmp_path), "--figures", tmp_path / "figures")
    assert code == 0, error
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    figures = ("reliability", "confidence", "risk_coverage", "classes")
    assert names == {f"{figure}{ending}" for figure in figures for ending in (".svg", ".pdf", ".png")}
    heads = {".svg": b"<?xml", ".pdf": b"%PDF", ".png": b"\x89PNG"}
    assert all(p.read_bytes().startswith(heads[p.suffix]) for p in (tmp_path / "figures").iterdir())


def test_notebooks_get_the_same_numbers(document):
    z, y = (torch.from_numpy(x) for x in rows())
    audit = confide.Audit(5)
    audit.update(z, y)
    for source in (audit, audit.result(), document["checks"][0]):
        axes = plots.reliability(source)
        drawn = axes.containers[-1].lines[0].get_xydata()
        held = [row for row in audit.result()["bins"] if row["count"]]
        assert drawn == pytest.approx(np.array([(row["confidence"], row["accuracy"]) for row in held]))
        mpl.pyplot.close(axes.figure)
    check = document["checks"][0]
    for name in ("confidence", "risk_coverage", "classes", "groups"):
        axes = getattr(plots, name)(check, title="one")
        assert axes.get_title() == "one"
        mpl.pyplot.close(axes.figure)
    with pytest.raises(InputError, match="there are no groups"):
        plots.groups(audit)


def decoded(source):
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))))
    assert pixels.shape == (312, 312, 3)  # 24 pixels, each 13 wide
    assert (pixels == pixels[6::13, 6::13].repeat(13, 0).repeat(13, 1)).all()
    return pixels[6::13, 6::13]


def test_maps_show_truth_error_and_confidence(tmp_path, capsys, monkeypatch):
    from PIL import Image

    z, y = images()
    np.savez(tmp_path / "seg.npz", logits=z, labels=y)
    (tmp_path / "pictures").mkdir()
    for k in range(6):
        Image.fromarray(np.full((48, 48, 3), 20 * k, np.uint8)).save(tmp_path / "pictures" / f"{k:03}.png")
    words = ("--ignore-index", 255, "--report", tmp_path / "out.html", "--images", tmp_path / "pictures", "--case", 3)
    code, _, error = call(capsys, monkeypatch, "check", tmp_path / "seg.npz", *words)
    assert code == 0, error
    text = (tmp_path / "out.html").read_text()
    found = dict(re.findall(r'<img alt="(\w+) of 3" src="([^"]+)"', text))
    assert list(found) == ["Image", "Truth", "Error", "Confidence"]
    assert (decoded(found["Image"]) == 60).all()
    kept = y[3] != 255
    wrong = (z[3].argmax(0) != y[3]) & kept
    assert ((decoded(found["Error"]) == (213, 94, 0)).all(-1) == wrong).all()
    sure = torch.from_numpy(z[3]).softmax(0).amax(0).numpy()
    assert (decoded(found["Confidence"]) == ramp(sure)).all()
    assert f"accuracy {100 * (1 - wrong.sum() / kept.sum()):.1f} %" in text
    code, _, error = call(capsys, monkeypatch, "check", tmp_path / "seg.npz", *words[:-1], "nobody")
    assert code == 2
    assert "there is no case 'nobody'; there are 0, 1, 2, 3, 4, ..." in error


def test_volumes_show_the_slice_with_most_errors(tmp_path, capsys, monkeypatch):
    z = torch.randn(2, 3, 5, 12, 10, generator=torch.Generator().manual_seed(0)).numpy()
    y = z.argmax(1)
    y[0, 3] = (y[0, 3] + 1) % 3
    y[1, 0, 0, 0] = (y[1, 0, 0, 0] + 1) % 3
    np.savez(tmp_path / "seg.npz", logits=z, labels=y)
    code, _, error = call(capsys, monkeypatch, "check", tmp_path / "seg.npz", "--report", tmp_path / "out.html")
    assert code == 0, error
    assert "slice 3 along axis 0, the one with most errors: accuracy 0.0 %" in (tmp_path / "out.html").read_text()


def test_a_png_of_ours_is_a_png():
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 3), dtype=np.uint8)
    assert (np.asarray(Image.open(io.BytesIO(png(pixels)))) == pixels).all()


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed to open the page in")
def test_a_browser_shows_it_without_errors(document, tmp_path):
    click = 'document.querySelectorAll("table.classes th button")[6].click()'
    for name, data in (("one", single(document)), ("two", document)):
        path = tmp_path / f"{name}.html"
        path.write_text(page(data).replace("</body>", f"<script>{click}</script></body>"), encoding="utf-8")
        words = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}")
        words += ("--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom", path.as_uri())
        done = subprocess.run([BROWSER, *words], capture_output=True, text=True, timeout=60, check=True)
        assert "CONSOLE" not in done.stderr
        assert 'data-ready="yes"' in done.stdout
        agree(done.stdout, data)
        gaps = [float(cells[6][1]) for _, cells in Tables(done.stdout).found["sortable classes"] if cells][:5]
        assert gaps == sorted((row["gap"] for row in data["checks"][0]["result"]["classes"]), reverse=True)
