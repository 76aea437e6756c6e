"""Each trap is planted and found, with its number and its place; sound predictions pass."""

import json
import sys

import numpy as np
import pytest
import torch

from confide.analysis.doctor.batch import Setting
from confide.analysis.doctor.exam import CHECKS, Exam
from confide.cli.main import main


def sound(n=2000, classes=10, seed=0):
    """Logits of a network that is right as often as it says, and labels."""
    generator = torch.Generator().manual_seed(seed)
    z = 3 * torch.randn(n, classes, generator=generator)
    return z, torch.multinomial(z.softmax(1), 1, generator=generator).squeeze(1)


def examine(z, y=None, inputs="logits", dtype="float32", ignore_index=None, step=300):
    exam = Exam(Setting(z.shape[1], inputs, dtype, ignore_index), y is not None)
    for start in range(0, len(z), step):
        part = slice(start, start + step)
        exam.observe(z[part], None if y is None else y[part], (start,))
    return exam.diagnosis()


def only(diagnosis, code, wrong=True):
    """The finding of that code; no other one makes numbers wrong."""
    assert [f.code for f in diagnosis.findings if f.wrong] == ([code] if wrong else [])
    return next(f for f in diagnosis.findings if f.code == code)


@pytest.mark.parametrize("inputs", ["logits", "probs"])
def test_sound_predictions_pass(inputs):
    z, y = sound()
    done = examine(z if inputs == "logits" else z.softmax(1), y, inputs)
    assert (done.findings, done.wrong, done.items) == ((), False, 2000)
    assert len(done.fine) == len(CHECKS) + 1 - (inputs == "logits")


def test_a_diagnosis_does_not_depend_on_the_chunks():
    z, y = sound()
    z[7, 3], y[1500] = float("nan"), 40
    z[-1] = z[0]
    assert examine(z, y, step=1) == examine(z, y, step=77) == examine(z, y, step=5000)


def test_nan_and_inf_with_their_places():
    z, y = sound()
    z[410, 3], z[900, 0], z[5, 2] = float("nan"), float("inf"), -float("inf")
    done = examine(z, y)
    nan, inf = (next(f for f in done.findings if f.code == code) for code in ("nan", "inf"))
    assert (nan.count, nan.first, inf.count, inf.first) == (1, (410,), 1, (900,))
    assert "first in row 410" in nan.found


def test_labels_out_of_range_and_what_they_may_mean():
    z, y = sound()
    ignored = torch.where(torch.arange(2000) % 20 == 3, 255, y)
    found = only(examine(z, ignored), "labels-out-of-range")
    assert (found.count, found.first) == (100, (3,))
    assert "100 of 2,000 (5 %)" in found.found
    assert "255 (100)" in found.found
    assert "pass --ignore-index 255" in found.fix
    assert not examine(z, ignored, ignore_index=255).wrong
    codes = {f.code: f for f in examine(z, y + 1).findings}
    assert "count from 1. Subtract 1" in codes["labels-out-of-range"].fix
    assert "labels are one too high" in codes["misaligned"].found
    assert "another set of classes" in only(examine(z, y + 5 * (y > 6)), "labels-out-of-range").fix


def test_a_softmax_too_many_is_seen_from_either_side():
    z, y = sound()
    p, clear = z.softmax(1), "these are probabilities, not logits"
    assert clear in only(examine(p, y), "double-softmax").found
    for scores, inputs in ((p.softmax(1), "probs"), (p.softmax(1).log(), "logits"), (p + 4, "logits")):
        found = only(examine(scores, y, inputs), "double-softmax")
        assert "a softmax was applied twice, by all appearance" in found.found
        assert "here 0.232" in found.effect
    assert not examine(z / 30, y * 0 + z.argmax(1)).wrong  # small logits are no crime
    binary, truth = sound(classes=2)
    assert only(examine(binary.softmax(1).softmax(1), truth, "probs"), "double-softmax")
    assert not examine(binary, truth).wrong


def test_probabilities_that_are_none():
    z, y = sound()
    p = z.softmax(1)
    p[40, 2] = -0.27
    found = only(examine(p, y, "probs"), "range")
    assert (found.count, found.first) == (1, (40,))
    assert "from -0.27" in found.found
    found = only(examine(z.sigmoid(), y, "probs"), "sums")
    assert "(sigmoid)" in found.fix
    assert found.count > 1900
    assert not examine(z.softmax(1).half(), y, "probs", "float16").wrong


def test_confidences_that_are_exactly_one():
    z, y = sound()
    p = (40 * z).softmax(1)
    done = {f.code: f for f in examine(p, y, "probs").findings}
    assert done["saturated"].count == int((p.amax(1) == 1).sum()) > 1000
    assert not done["saturated"].wrong
    assert done["zero-at-label"].count == int((p[torch.arange(2000), y] == 0).sum()) > 0
    assert done["zero-at-label"].wrong
    hard = torch.nn.functional.one_hot(z.argmax(1), 10).float()
    assert (
        "all confidences are exactly 1"
        in next(f for f in examine(hard, y, "probs").findings if f.wrong and f.code == "saturated").found
    )
    wide = z.clone()
    wide[17, 4] = wide[17].max() + 25
    found = only(examine(wide, y), "saturated", wrong=False)
    assert found.first is not None
    assert (wide[:18].softmax(1).amax(1) == 1).sum() == 1
    assert found.first == (17,)


def test_rows_that_a_sampler_repeated():
    z, y = sound()
    padded, labels = torch.cat((z, z[:6])), torch.cat((y, y[:6]))
    found = only(examine(padded, labels), "duplicates")
    assert (found.count, found.first) == (6, (2000,))
    assert "first row 2,000, which repeats row 0" in found.found
    assert "sampler pads" in found.fix
    inside = z.clone()
    inside[50] = inside[3]  # the data themselves may hold an image twice
    assert only(examine(inside, y), "duplicates", wrong=False).count == 1
    twice = torch.cat((z[:500], z[:500], z[500:]))
    assert only(examine(twice, torch.cat((y[:500], y[:500], y[500:]))), "duplicates").count == 500
    assert "duplicates" not in {f.code for f in examine((200 * z).softmax(1).softmax(1), y, "probs").findings}
    rounded = (z.softmax(1) * 100).round() / 100
    assert not {"duplicates"} & {f.code for f in examine(rounded, y, "probs").findings}


def test_what_is_remembered_of_rows_is_bounded(monkeypatch):
    monkeypatch.setattr("confide.analysis.doctor.copies.MOST", 256)
    z, y = sound(4000)
    twice, labels = torch.cat((z, z)), torch.cat((y, y))
    exam = Exam(Setting(10, "logits"))
    for start in range(0, 8000, 500):
        exam.observe(twice[start : start + 500], labels[start : start + 500], (start,))
        copies = exam.copies
        assert len(copies.seen) <= 256
    assert copies.every >= 16
    assert copies.count == len(copies.seen)  # both copies of a row are kept or forgotten
    assert f"one row of {copies.every} compared" in only(exam.diagnosis(), "duplicates").found


def test_ties_of_half_precision():
    generator = torch.Generator().manual_seed(0)
    z = (10 + 0.5 * torch.randn(2000, 200, generator=generator)).bfloat16().float()
    found = only(examine(z, dtype="bfloat16"), "ties")
    top = z.topk(2).values
    assert found.count == int((top[:, 0] == top[:, 1]).sum()) > 100
    assert "digits of bfloat16" in found.found
    z, y = sound()
    z[3, :2] = 30
    assert only(examine(z, y), "ties", wrong=False).first == (3,)


def test_classes_that_never_occur():
    z, y = sound()
    z[:, 9] = -30
    done = [f for f in examine(z, torch.where(y == 9, 0, y)).findings if f.code == "absent-classes"]
    assert [f.found for f in done] == [
        "1 of 10 classes are never a label: 9",
        "1 of 10 classes are never predicted: 9",
    ]
    assert [f.code for f in examine(z, torch.where(y == 9, 0, y)).findings] == [
        "constant-columns",
        "absent-classes",
        "absent-classes",
    ]


def test_rows_that_are_all_alike():
    z, y = sound()
    same = z[:1] + 1e-5 * z
    assert "identical-rows" in {f.code for f in examine(same, y).findings if f.wrong}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda y: y.roll(1), "labels come one row late"),
        (lambda y: y.roll(-1), "labels come one row early"),
        (lambda y: (y + 3) % 10, "the columns of scores stand in another order than the labels count"),
        (lambda y: y[torch.randperm(2000, generator=torch.Generator().manual_seed(1))], "chance alone gives"),
    ],
)
def test_labels_of_other_rows(change, said):
    z, y = sound()
    found = only(examine(z, change(y)), "misaligned")
    assert said in found.found


def test_swapped_axes_of_a_mask_are_seen():
    z, y = sound(8 * 24 * 24)
    dense, labels = z.reshape(8, 24, 24, 10).movedim(-1, 1), y.reshape(8, 24, 24)
    assert not examine(dense, labels).wrong
    assert "last two axes swapped" in only(examine(dense, labels.mT), "misaligned").found
    dense[3, 2, 10, 20] = float("nan")
    assert only(examine(dense, labels, step=2), "nan").first == (3, 10, 20)


def test_a_weak_network_is_not_accused():
    z, _ = sound()
    y = torch.randint(10, (2000,), generator=torch.Generator().manual_seed(3))
    assert not examine(z / 20, y).wrong  # at chance, and says so


def test_labels_that_are_the_predictions_are_suspected():
    z, _ = sound()
    found = only(examine(z, z.argmax(1)), "no-errors", wrong=False)
    assert "all 2,000 predictions are right" in found.found


def call(capsys, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["confide", "doctor", *map(str, words)])
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code or 0, *capsys.readouterr()


def test_the_command_says_it_in_words(tmp_path, capsys, monkeypatch):
    z, y = sound()
    path = tmp_path / "preds.npz"
    np.savez(path, logits=z.numpy(), labels=y.numpy())
    code, out, err = call(capsys, monkeypatch, path)
    assert (code, err.strip()) == (0, "")
    assert "Nothing that makes numbers wrong was found." in out
    assert "Looked at and fine: every score is a number" in out
    assert max(map(len, out.splitlines()[1:])) <= 80
    np.savez(path, logits=z.softmax(1).numpy(), labels=y.numpy())
    code, out, _ = call(capsys, monkeypatch, path)
    flat = " ".join(out.split())
    assert code == 1
    assert "1 finding would make numbers wrong." in flat
    assert "'logits' is named like logits, but these look like probabilities" in flat
    assert "Pass --inputs probs if the content is right" in flat
    assert call(capsys, monkeypatch, path, "--inputs", "probs")[0] == 0
    code, out, _ = call(capsys, monkeypatch, path, "--inputs", "logits")
    assert code == 1
    assert "These are probabilities, not logits" in " ".join(out.split())


def test_the_command_answers_in_json(tmp_path, capsys, monkeypatch):
    z, y = sound()
    np.save(tmp_path / "logits.npy", z.numpy())
    np.save(tmp_path / "labels.npy", torch.where(y == 0, 255, y).numpy().astype(np.uint8))
    code, out, _ = call(capsys, monkeypatch, tmp_path / "logits.npy", "--json")
    found = json.loads(out)
    assert (code, found["wrong"], found["classes"], found["predictions"], found["inputs"]) == (
        1,
        True,
        10,
        2000,
        "logits",
    )
    assert found["findings"][0]["code"] == "labels-out-of-range"
    code, out, _ = call(capsys, monkeypatch, tmp_path / "logits.npy", "--json", "--ignore-index", "255")
    found = json.loads(out)
    assert (code, found["predictions"]) == (0, int((y != 0).sum()))


def test_axes_that_only_habit_tells_apart_are_named(tmp_path, capsys, monkeypatch):
    z, y = sound(40)
    np.save(tmp_path / "z.npy", z.T.numpy())
    code, out, _ = call(capsys, monkeypatch, tmp_path / "z.npy")
    assert code == 0
    assert "40 classes for 10 rows, and no labels that tell the axes of (10, 40) apart" in " ".join(out.split())
    assert "tell the axes" not in call(capsys, monkeypatch, tmp_path / "z.npy", "--dim", "0")[1]
    np.savez(tmp_path / "z.npz", logits=z.numpy(), labels=y.numpy())
    assert "tell the axes" not in call(capsys, monkeypatch, tmp_path / "z.npz")[1]


def test_a_folder_of_volumes_is_examined_with_its_labels(tmp_path, capsys, monkeypatch):
    z, y = sound(3 * 4 * 5 * 6)
    for name in ("a", "b"):
        np.savez(tmp_path / f"{name}.npz", logits=z.T.reshape(10, 12, 5, 6).numpy(), seg=y.reshape(12, 5, 6).numpy())
    code, out, _ = call(capsys, monkeypatch, tmp_path, "--json")
    found = json.loads(out)
    assert (code, found["rows"], found["predictions"]) == (0, 2, 720)


def test_bad_input_is_refused(tmp_path, capsys, monkeypatch):
    code, out, err = call(capsys, monkeypatch, tmp_path / "nowhere.npz")
    assert (code, out, err) == (2, "", f"confide: there is no file '{tmp_path / 'nowhere.npz'}'\n")
    np.savez(tmp_path / "a.npz", logits=np.eye(3), labels=np.arange(3))
    code, _, err = call(capsys, monkeypatch, tmp_path / "a.npz", "--inputs", "odds")
    assert (code, err) == (2, "confide: inputs must be 'logits' or 'probs', got 'odds'\n")
