"""`confide calibrate` as its users meet it, and the comparison behind it."""

import json
import sys

import numpy as np
import pytest
import torch

from confide.cli.main import main
from confide.posthoc import ALL, Platt, Temperature, VectorScaling, load
from confide.study.calibration import FOLDS, NONE, Data, compare, interval, items, judged, shared

QUICK = ("--method", "temperature", "--method", "vector-scaling")


def drawn(n, seed, scale=3.0, classes=4):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, classes, generator=generator) * 2
    return z * scale, torch.multinomial(z.softmax(1), 1, generator=generator)[:, 0]


@pytest.fixture
def files(tmp_path):
    for name, seed in (("val", 0), ("test", 1)):
        z, y = drawn(400, seed)
        np.savez(tmp_path / f"{name}.npz", logits=z.numpy(), labels=y.numpy())
    return tmp_path


def call(capsys, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["confide", "calibrate", *map(str, words)])
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    return stop.value.code or 0, " ".join(out.split()), err


def test_fit_saves_what_apply_uses(files, capsys, monkeypatch):
    code, out, _ = call(capsys, monkeypatch, "fit", files / "val.npz", "-o", files / "t.safetensors")
    found = load(files / "t.safetensors")
    assert code == 0
    assert f"Temperature {found.temperature_:.4f} (standard error {found.error_:.4f}) from 400 labels" in out
    assert f"NLL {found.nll_before_:.4f} before, {found.nll_after_:.4f} after, on the data of the fit itself" in out
    code, out, _ = call(
        capsys, monkeypatch, "apply", files / "t.safetensors", files / "test.npz", "-o", files / "o.npz"
    )
    assert code == 0
    assert "LEAKAGE" not in out
    with np.load(files / "o.npz") as saved, np.load(files / "test.npz") as given:
        assert np.allclose(saved["logits"] * found.temperature_, given["logits"], atol=1e-4)
        assert np.allclose(saved["probs"].sum(1), 1, atol=1e-6)
        assert np.array_equal(saved["labels"], given["labels"])
        nll = -np.log(saved["probs"][np.arange(400), saved["labels"]]).mean()
    assert f"after NLL {nll:.4f}" in out


def test_apply_to_the_data_of_the_fit_is_leakage(files, capsys, monkeypatch):
    call(capsys, monkeypatch, "fit", files / "val.npz", "-o", files / "t.safetensors")
    words = "apply", files / "t.safetensors", files / "val.npz", "-o", files / "o.npz"
    assert "LEAKAGE: judged on data that it was fitted on" in call(capsys, monkeypatch, *words)[1]
    assert "LEAKAGE" not in call(capsys, monkeypatch, *words, "--allow-same-data")[1]


def test_compare_recommends_and_says_why(files, capsys, monkeypatch):
    words = "compare", files / "val.npz", files / "test.npz", *QUICK, "-o", files / "r.json"
    code, out, _ = call(capsys, monkeypatch, *words)
    assert code == 0
    assert out.startswith("Better: use Temperature; ")
    assert "Judged on the second file." in out
    report = json.loads((files / "r.json").read_text())
    assert (report["recommended"], report["leakage"], report["verdict"]) == ("Temperature", False, "better")
    assert [row["method"] for row in report["rows"]] == [NONE, "Temperature", "VectorScaling"]


def test_compare_on_the_same_data_is_marked(files, capsys, monkeypatch):
    words = "compare", files / "val.npz", files / "val.npz", *QUICK, "-o", files / "r.json"
    assert "LEAKAGE" in call(capsys, monkeypatch, *words)[1]
    assert json.loads((files / "r.json").read_text())["leakage"] is True
    assert "LEAKAGE" not in call(capsys, monkeypatch, *words, "--allow-same-data")[1]
    assert json.loads((files / "r.json").read_text())["leakage"] is True


def test_one_file_is_judged_in_folds(files, capsys, monkeypatch):
    out = call(capsys, monkeypatch, "compare", files / "val.npz", *QUICK)[1]
    assert "Judged on 5 folds, each by a fit on the others." in out
    assert "LEAKAGE" not in out


def test_errors_name_the_fix(files, capsys, monkeypatch):
    code, _, err = call(capsys, monkeypatch, "fit", files / "val.npz", "-o", files / "t.pkl")
    assert (code, "must end in .safetensors" in err) == (2, True)
    code, _, err = call(
        capsys, monkeypatch, "fit", files / "val.npz", "-o", files / "t.safetensors", "--method", "temprature"
    )
    assert (code, "did you mean Temperature?" in err) == (2, True)
    code, _, err = call(capsys, monkeypatch, "fit", files / "val.npz", "-o", files / "t.safetensors", "--method", "qqq")
    assert err.startswith("confide: no calibrator 'qqq' (there are Temperature, EnsembleTemperature, ")
    np.savez(files / "void.npz", logits=np.zeros((4, 3), np.float32), labels=np.array([0, 1, 2, 255]))
    code, _, err = call(capsys, monkeypatch, "fit", files / "void.npz", "-o", files / "t.safetensors")
    assert (code, "did you mean --ignore-index 255?" in err) == (2, True)
    np.savez(files / "bare.npz", logits=np.zeros((4, 3), np.float32))
    code, _, err = call(capsys, monkeypatch, "fit", files / "bare.npz", "-o", files / "t.safetensors")
    assert (code, "has no labels, from which to learn or judge" in err) == (2, True)
    code, _, err = call(capsys, monkeypatch, "apply", files / "val.npz", files / "test.npz", "-o", files / "o.npz")
    assert (code, "is not a calibrator" in err) == (2, True)
    code, _, err = call(capsys, monkeypatch, "compare", files / "val.npz", files / "nothing.npz")
    assert (code, "there is no file" in err) == (2, True)


def test_probabilities_are_seen_or_asked_for(files, capsys, monkeypatch):
    z, y = drawn(300, 0)
    np.savez(files / "p.npz", probs=z.softmax(1).numpy(), labels=y.numpy())
    assert call(capsys, monkeypatch, "fit", files / "p.npz", "-o", files / "t.safetensors")[0] == 0
    assert load(files / "t.safetensors").temperature_ == pytest.approx(Temperature().fit(z, y).temperature_, rel=1e-3)
    np.savez(files / "p.npz", logits=z.softmax(1).numpy(), labels=y.numpy())
    code, _, err = call(capsys, monkeypatch, "fit", files / "p.npz", "-o", files / "t.safetensors")
    assert (code, "pass --inputs probs if the content is right" in err) == (2, True)
    words = "fit", files / "p.npz", "-o", files / "t.safetensors", "--inputs", "probs"
    assert call(capsys, monkeypatch, *words)[0] == 0


def test_one_score_a_label(files, capsys, monkeypatch):
    z, y = drawn(300, 0, classes=2)
    score = z[:, 1] - z[:, 0]
    np.savez(files / "one.npz", logits=score.numpy(), labels=y.numpy())
    found = Platt().fit(score, y)
    for path in (files / "t.safetensors", files / "mine.safetensors"):  # by the command, and by hand
        found.save(files / "mine.safetensors")
        words = "fit", files / "one.npz", "-o", files / "t.safetensors", "--method", "platt"
        assert call(capsys, monkeypatch, *words)[0] == 0
        words = "apply", path, files / "one.npz", "-o", files / "o.npz", "--allow-same-data"
        assert call(capsys, monkeypatch, *words)[0] == 0
        with np.load(files / "o.npz") as saved:
            probs = saved["probs"] if saved["probs"].ndim == 1 else saved["probs"][:, 1]
        assert np.allclose(probs, found.predict_proba(score), atol=1e-5)


def test_nothing_to_gain_is_said():
    data = Data(*drawn(2000, 0, scale=1.0))
    report = compare(data, Data(*drawn(2000, 1, scale=1.0)), (Temperature, Platt))
    assert (report.recommended, report.verdict) == (NONE, "no detectable change")
    assert "no method lowers the NLL by more than chance" in report.reason


def test_what_every_fold_warns_of_is_said_once(files, capsys, monkeypatch):
    z, y = drawn(1000, 0, scale=1.0, classes=20)
    np.savez(files / "calibrated.npz", logits=z.numpy(), labels=y.numpy())
    _, out, _ = call(capsys, monkeypatch, "compare", files / "calibrated.npz", "--method", "HistogramBinning")
    assert out.count("HistogramBinning alone would raise the NLL") == 1
    assert "HistogramBinning: HistogramBinning" not in out


def test_folds_judge_every_row_once_by_others():
    data = Data(*drawn(500, 0))
    report = compare(data, None, (Temperature,))
    order = torch.randperm(500, generator=torch.Generator().manual_seed(0)).chunk(FOLDS)
    total = 0.0
    for i, part in enumerate(order):
        rest = torch.cat([other for j, other in enumerate(order) if j != i])
        log_p = Temperature().fit(data.logits[rest], data.labels[rest]).transform(data.logits[part]).log_softmax(1)
        total -= float(log_p.gather(1, data.labels[part][:, None]).sum())
    assert report.rows[1].nll == pytest.approx(total / 500, rel=1e-5)


def test_intervals_cover():
    generator = torch.Generator().manual_seed(0)
    alone = torch.arange(200)
    found = [interval(torch.randn(200, generator=generator), alone) for _ in range(60)]
    assert 50 <= sum(low < 0 < high for low, high in found) <= 60
    low, high = interval(torch.randn(30_000, generator=generator), torch.arange(30_000))
    assert high - low == pytest.approx(2 * 1.96 / 30_000**0.5, rel=0.05)


def test_intervals_resample_images_and_not_their_pixels():
    effect = torch.randn(40, generator=torch.Generator().manual_seed(0))  # the same for all pixels of an image
    low, high = interval(effect.repeat_interleave(100), torch.arange(40).repeat_interleave(100))
    alone = interval(effect, torch.arange(40))
    assert (low, high) == pytest.approx(alone, abs=1e-5)
    z, y = drawn(4 * 64, 0)
    data = Data(z.reshape(4, 8, 8, 4).movedim(-1, 1), y.reshape(4, 8, 8).where(y.reshape(4, 8, 8) != 3, 255), 255)
    assert torch.equal(torch.bincount(items(data)), (data.labels != 255).sum((1, 2)))
    assert len(items(data)) == len(judged(None, data)[1])


def test_shared_rows_are_counted():
    a, b = Data(*drawn(100, 0)), Data(*drawn(100, 1))
    mixed = Data(torch.cat((a.logits[:30], b.logits[:70])), torch.cat((a.labels[:30], b.labels[:70])))
    assert (shared(a, a), shared(a, b), shared(a, mixed)) == (1.0, 0.0, 0.3)


def test_several_labels_and_images():
    z, y = drawn(300, 0)
    labels = torch.nn.functional.one_hot(y, 4)
    many = compare(Data(z, labels), None, (Temperature, VectorScaling))
    assert many.rows[1].nll < many.rows[0].nll
    log_p, known = judged(None, Data(z, labels))
    assert (log_p.shape, known.shape) == ((1200, 2), (1200,))
    z, y = drawn(20 * 64, 0)
    image = Data(z.reshape(20, 8, 8, 4).movedim(-1, 1), y.reshape(20, 8, 8), ignore_index=3)
    report = compare(image, None, ALL[:4])
    assert "LocalTemperature" in {row.method for row in report.rows}
    assert not report.skipped
