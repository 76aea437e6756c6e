"""A margin from saved logits: the rule against a slow one, what is said, what is read, and what is refused."""

import io
import math
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch

from confide import ACLS, ECE, MbLS
from confide.analysis import suggest
from confide.analysis.margins import LARGEST
from confide.cli.main import main
from confide.core.errors import InputError
from confide.data.opening import load
from confide.report.curves import curve


def overconfident(rows=2000, classes=10, sharpness=2.0, seed=0):
    """Labels drawn from a softmax, and its logits times `sharpness`: right on average at 1, too sure above."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(rows, classes, generator=generator) * 3
    y = torch.multinomial(z.softmax(1), 1, generator=generator)[:, 0]
    return z * sharpness, y


def cut_confidence(z, margin):
    """The mean confidence with every distance cut, row by row in plain floats."""
    total = 0.0
    for row in z.double().tolist():
        gaps = [min(max(row) - value, margin) for value in row]
        total += 1 / sum(math.exp(-gap) for gap in gaps)
    return total / len(z)


def test_at_the_cut_the_predictions_are_as_confident_as_right():
    z, y = overconfident(300)
    found = suggest(z, y)
    accuracy = (z.argmax(1) == y).double().mean().item()
    assert found.labelled.accuracy == pytest.approx(accuracy)
    assert found.confidence == pytest.approx(cut_confidence(z, 1e9), abs=1e-6)
    assert cut_confidence(z, found.labelled.cut.margin) == pytest.approx(accuracy, abs=1e-6)
    assert cut_confidence(z, found.labelled.cut.low) == pytest.approx(accuracy - found.labelled.error, abs=1e-6)
    assert cut_confidence(z, found.labelled.cut.high) == pytest.approx(accuracy + found.labelled.error, abs=1e-6)
    assert found.labelled.ece == ECE()(z, y)
    assert found.margin == round((found.labelled.cut.margin + 6) / 2, 1)


def test_a_cut_beyond_the_papers_margin_is_taken_as_it_is():
    z = torch.zeros(4000, 10)
    z[:, 0] = 14.0  # sure, and almost always right
    y = (torch.arange(4000) % 250 == 7).long()
    found = suggest(z, y)
    assert found.labelled.cut.margin > 6
    assert found.margin == round(found.labelled.cut.margin, 1)
    assert "tighter than these predictions call for" in str(found)
    assert "half way" not in str(found)


def test_the_share_it_would_touch_is_counted():
    z, y = overconfident(300)
    found = suggest(z, y)
    gaps = z.max(1, keepdim=True).values - z
    assert found.distances.beyond == pytest.approx(((gaps > found.margin).sum() / (300 * 9)).item())
    assert found.samples == pytest.approx((gaps > found.margin).any(1).double().mean().item())
    acts = MbLS(margin=found.margin).terms(z, y)["active"].item() * 10  # the predicted class among them
    assert acts == pytest.approx(9 * found.distances.beyond + found.samples, abs=1e-5)


@pytest.mark.parametrize("margin", [2.0, 4.0, 6.0, 10.0])
def test_the_resting_place_is_the_one_of_the_loss(margin, monkeypatch):
    monkeypatch.setattr("confide.analysis.margins._margin", lambda *_: margin)
    found, lines = suggest(*overconfident(100)), curve(MbLS(margin=margin))
    assert found.rest == pytest.approx(lines.rest, abs=1e-4)
    assert found.rest_confidence == pytest.approx(lines.confidence, abs=1e-5)


def test_published_margins_depend_on_the_kind_of_data():
    generator = torch.Generator().manual_seed(0)

    def published(*shape):
        return suggest(12 * torch.randn(shape, generator=generator)).margin

    assert published(50, 4) == published(50, 19) == 6
    assert published(50, 20) == published(2, 4, 8, 8) == 10


def test_without_labels_a_margin_that_nothing_exceeds_gives_way():
    z = torch.linspace(0, 4, 50).repeat(3, 1).T.contiguous()
    z[:, 1:] = 0
    found = suggest(z)
    assert found.margin == 3.0  # the third quartile of 0 to 4
    assert found.distances.beyond > 0.2
    assert "hardly a distance exceeds that" in str(found)


def test_no_overconfidence_needs_no_margin():
    for sharpness, said in ((1.0, "so neither over- nor underconfidence is shown"), (0.4, "underconfident by")):
        found = suggest(*overconfident(sharpness=sharpness))
        assert found.labelled.cut is None
        assert found.margin == 6
        assert said in str(found)
        assert "None is needed to lower the confidence. As a precaution:\nMbLS(margin=6, strength=0.1)" in str(found)


def test_training_data_are_suspected():
    z, _ = overconfident()
    said = str(suggest(z, z.argmax(1)))
    assert "almost all right, which suggests data that the network was trained on" in said
    assert "almost all right" not in str(suggest(*overconfident()))


def test_dense_is_flattened_and_ignored_is_removed():
    z, y = overconfident(240)
    dense, labels = z.reshape(2, 10, 12, 10).movedim(-1, 1), y.reshape(2, 10, 12).clone()
    dense = dense.clone()
    dense[1, :, 3], labels[1, 3] = float("nan"), 255
    keep = (labels != 255).flatten()
    found, flat = suggest(dense, labels, ignore_index=255), suggest(z[keep], y[keep])
    assert (found.rows, found.dense, found.published) == (228, True, 10)
    assert found.labelled == flat.labelled
    assert found.distances.quantiles == flat.distances.quantiles
    assert "the noise is larger than stated" in str(found)
    assert "the noise is larger" not in str(flat)
    last = suggest(z.reshape(2, 120, 10), y.reshape(2, 120), dim=-1)
    assert last.labelled == suggest(z, y).labelled


def test_large_files_are_thinned_evenly(monkeypatch):
    monkeypatch.setattr("confide.analysis.margins.LARGEST", 1000)
    z, y = overconfident(1000)
    found = suggest(z, y)
    assert LARGEST > 10**7
    assert (found.rows, found.every) == (100, 10)
    assert found.labelled == suggest(z[::10], y[::10]).labelled
    assert "100 samples (one of 10), 10 classes." in str(found)


def test_what_it_says_it_proposes():
    found = suggest(*overconfident())
    said = str(found)
    assert f"MbLS(margin={found.margin:g}, strength=0.1)  or  ACLS(margin={found.margin:g})" in said
    assert "How much accuracy changes is unknown until you train" in said
    assert "between -0.3 and +2.1 points" in said
    assert f"try {found.labelled.cut.margin:.1f}, {found.margin:g} and 6 on held-out data" in said
    MbLS(margin=found.margin, strength=found.strength), ACLS(margin=found.margin)  # takes them


def test_bad_tensors_are_refused():
    z, y = overconfident(20)
    with pytest.raises(InputError, match="these are probabilities, not logits"):
        suggest(z.softmax(1), y)
    with pytest.raises(InputError, match="these are probabilities, not logits"):
        suggest(z.softmax(1))
    assert suggest(z.softmax(1).log(), y).labelled.accuracy == suggest(z, y).labelled.accuracy
    with pytest.raises(InputError, match="labels must be class numbers, one a row"):
        suggest(z, torch.nn.functional.one_hot(y, 10))
    with pytest.raises(InputError, match="labels must be class numbers, one a row"):
        suggest(z, y.float())
    with pytest.raises(InputError, match=r"outside \[0, 10\)"):
        suggest(z, y + 5)
    with pytest.raises(InputError, match="NaN in 1 rows"):
        suggest(torch.where(torch.arange(20)[:, None] == 3, float("nan"), z))
    with pytest.raises(InputError, match="there is no row to look at"):
        suggest(z, torch.full_like(y, -100))
    with pytest.raises(InputError, match="there is no row to look at"):
        suggest(z[:0])
    with pytest.raises(InputError, match="dim=3 is not an axis"):
        suggest(z, dim=3)


# What is read, and what the command answers


def call(capsys, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["confide", "suggest", *map(str, words)])
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code or 0, *capsys.readouterr()


def test_the_command_prints_the_whole_page(tmp_path, capsys, monkeypatch):
    z, y = overconfident()
    path = tmp_path / "logits.npz"
    np.savez(path, logits=z.numpy(), labels=y.numpy().astype(np.uint8))
    code, out, err = call(capsys, monkeypatch, path)
    assert (code, err) == (0, "")
    body = out.split("\n", 1)[1]
    assert max(map(len, body.splitlines())) <= 80
    assert "\x1b" not in out
    assert f"{path}: logits, labels" in out
    assert " ".join(str(suggest(z, y)).split()) == " ".join(body.split())


def test_the_command_takes_layout_and_ignored_labels(tmp_path, capsys, monkeypatch):
    z, y = overconfident(64)
    path = tmp_path / "dense.npz"
    labels = np.where(np.arange(64) < 4, 255, y.numpy()).reshape(4, 4, 4)
    np.savez(path, scores=z.numpy().reshape(4, 4, 4, 10), targets=labels)
    code, out, _ = call(capsys, monkeypatch, path, "--dim", "-1", "--ignore-index", "255")
    assert code == 0
    assert "scores, targets" in out
    assert "60 samples, 10 classes." in out


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"x": np.arange(6)}, "has no array of logits, floating point with a class axis; it holds x int64 (6,)"),
        ({"a": np.ones((3, 2)), "b": np.ones((3, 2))}, "has several arrays that could be logits; it holds a float64"),
        ({"logits": np.ones(3)}, "'logits' in"),
        ({"logits": np.ones((3, 2), dtype=int)}, "logits are floating point, with a class axis"),
        ({"logits": np.eye(3), "labels": np.array(["a", "b", "c"])}, "labels must be class numbers"),
        ({"logits": np.eye(3), "labels": np.array([0.5, 1, 2])}, "labels must be class numbers"),
        ({"logits": np.array([[0.25, 0.75], [0.5, 0.5]])}, "these are probabilities, not logits"),
        ({"logits": np.eye(3) * 9, "labels": np.array([0, 1])}, "fit no axis of 'logits' of shape (3, 3)"),
        ({"logits": np.array([[None, 1.0]])}, "holds Python objects, which are not opened because they could run code"),
        ({"z": np.array([[None, 1.0]])}, "holds Python objects"),
        ({}, "it holds nothing"),
    ],
)
def test_files_that_cannot_be_meant_are_refused(arrays, said, tmp_path, capsys, monkeypatch):
    path = tmp_path / "logits.npz"
    np.savez(path, **arrays)
    code, out, err = call(capsys, monkeypatch, path)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("confide: ")


def test_a_missing_or_broken_file_is_refused(tmp_path, capsys, monkeypatch):
    code, _, err = call(capsys, monkeypatch, tmp_path / "nowhere.npz")
    assert (code, err) == (2, f"confide: there is no file '{tmp_path / 'nowhere.npz'}'\n")
    assert call(capsys, monkeypatch, tmp_path)[0] == 2
    good = io.BytesIO()
    np.savez_compressed(good, logits=np.random.default_rng(0).normal(size=(50, 3)))
    whole = good.getvalue()
    corrupt = bytearray(whole)
    corrupt[200:260] = bytes(60)
    for junk in (b"", b"no archive", whole[:100], bytes(corrupt), b"PK\x03\x04" + bytes(40)):
        (tmp_path / "junk.npz").write_bytes(junk)
        code, _, err = call(capsys, monkeypatch, tmp_path / "junk.npz")
        assert code == 2, junk[:20]
        assert "is not a readable .npz file: save it with numpy.savez" in err


def test_nothing_in_a_file_is_executed(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    bomb = np.empty((2, 2), dtype=object)
    bomb[:] = Bomb()
    np.savez(tmp_path / "bomb.npz", logits=bomb)
    np.save(tmp_path / "bomb.npy", bomb)
    for name in ("bomb.npz", "bomb.npy"):
        with pytest.raises(InputError):
            load(tmp_path / name)
    assert not (tmp_path / "ran").exists()


def test_what_else_is_in_the_file_does_not_matter(tmp_path):
    path = tmp_path / "more.npz"
    np.savez(
        path, logits=np.eye(3, dtype=np.float16) * 4, names=np.array(["a", None], dtype=object), other=np.ones((2, 2))
    )
    found = load(path)
    assert (found.names, found.labels) == (("logits",), None)
    assert found.logits.dtype == torch.float32


def test_any_kind_of_number_is_read(tmp_path):
    path = tmp_path / "odd.npz"
    kinds = ((">f8", torch.float64), ("f2", torch.float32), (np.longdouble, torch.float64))
    for kind, wide in kinds:
        np.savez(path, logits=np.eye(3).astype(kind), labels=np.array([0.0, 1.0, 2.0]))
        found = load(path)
        assert (found.logits.dtype, found.labels.tolist()) == (wide, [0, 1, 2])
    np.save(tmp_path / "plain.npy", np.eye(3))
    assert load(tmp_path / "plain.npy").labels is None
    with zipfile.ZipFile(tmp_path / "odd.zip", "w") as archive:
        archive.writestr("logits.txt", "1 2 3")
    with pytest.raises(InputError):
        load(tmp_path / "odd.zip")


def test_help_says_what_the_rule_is_without_torch():
    code = (
        "import sys; sys.argv = ['confide', 'suggest', '--help']\n"
        "from confide.cli.main import main\n"
        "try:\n    main()\nfinally:\n    print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    plain = {k: v for k, v in os.environ.items() if k not in ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS")}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=plain, timeout=60).stdout
    flat = re.sub(r"\s+", " ", out)
    assert "as confident on average as they are right. The proposal lies half way from there" in flat
    assert "What it does to accuracy, only training can tell." in flat
    assert out.splitlines()[-1] == "False False"
