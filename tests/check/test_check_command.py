"""`confide check` and `confide merge` as their users meet them."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from planted import call, checked, images, rows, saved

import confide
from confide.core.errors import InputError
from confide.report.check.gathering import Options, gather, open_checked, plain_ids
from confide.report.check.misses import MOST, Misses


def metric(document, key, number=0):
    return next(row for row in document["checks"][number]["result"]["metrics"] if row["key"] == key)


def test_no_flag_is_needed_and_the_verdict_comes_first(tmp_path, capsys, monkeypatch):
    code, out, error = call(capsys, monkeypatch, "check", saved(tmp_path))
    assert code == 0
    assert out.startswith("Overconfident by ")
    assert "95 % interval" in out.splitlines()[0]
    assert "One temperature, T = " in " ".join(out.splitlines()[:3])
    assert "by chance" in out
    assert "temperature above 1" in out
    assert "'logits' (float32, 4,000 x 5) holds the scores, by its name." in " ".join(error.split())


def test_its_numbers_are_those_of_the_metrics(tmp_path, capsys, monkeypatch):
    z, y = (torch.from_numpy(x) for x in rows())
    document = checked(capsys, monkeypatch, saved(tmp_path))
    for key, own in (("ece", confide.ECE()), ("nll", confide.NLL()), ("accuracy", confide.Accuracy())):
        assert metric(document, key)["value"] == own(z, y)
    assert document["checks"][0]["result"]["n"] == 4000


def test_probabilities_in_a_table_give_the_same(tmp_path, capsys, monkeypatch):
    z, y = rows(500)
    p = torch.from_numpy(z).double().softmax(1)
    lines = [
        "prob_0,prob_1,prob_2,prob_3,prob_4,label",
        *(",".join(map(str, [*r, t])) for r, t in zip(p.tolist(), y, strict=True)),
    ]
    (tmp_path / "preds.csv").write_text("\n".join(lines))
    document = checked(capsys, monkeypatch, tmp_path / "preds.csv")
    assert document["checks"][0]["result"]["settings"]["inputs"] == "probs"
    assert metric(document, "ece")["value"] == pytest.approx(confide.ECE()(p.log(), torch.from_numpy(y)), abs=1e-6)


def test_groups_units_and_class_names(tmp_path, capsys, monkeypatch):
    site, patient = np.array(["north", "south"])[np.arange(4000) % 2], np.arange(4000) // 40
    path = saved(tmp_path, site=site, patient=patient, class_names=np.array(list("abcde")))
    document = checked(capsys, monkeypatch, path, "--group", "site", "--unit", "patient")
    result = document["checks"][0]["result"]
    assert [(row["column"], row["value"], row["n"]) for row in result["groups"]] == [
        ("site", "north", 2000),
        ("site", "south", 2000),
    ]
    assert result["units"]["count"] == 100
    assert document["checks"][0]["class_names"] == list("abcde")
    code, _, error = call(capsys, monkeypatch, "check", path, "--group", "scanner")
    assert code == 2
    assert "has no column 'scanner' with one value a row; it has site, patient" in error


def test_the_document_says_where_it_comes_from(tmp_path, capsys, monkeypatch):
    path = saved(tmp_path)
    document = checked(capsys, monkeypatch, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert document["checks"][0]["files"] == [{"path": str(path), "bytes": path.stat().st_size, "sha256": digest}]
    assert document["command"].startswith("confide check ")
    assert document["confide"] == confide.__version__
    assert set(document["environment"]) == {"python", "torch", "numpy", "system"}


def test_images_count_by_image_and_ignored_pixels_not_at_all(tmp_path, capsys, monkeypatch):
    z, y = images()
    np.savez(tmp_path / "seg.npz", logits=z, labels=y)
    code, _, error = call(capsys, monkeypatch, "check", tmp_path / "seg.npz")
    assert code == 2
    assert "label 255 (8.3% of the labels) is no class of 3; pass --ignore-index 255 to leave it out" in error
    document = checked(capsys, monkeypatch, tmp_path / "seg.npz", "--ignore-index", 255)
    result = document["checks"][0]["result"]
    assert (result["n"], result["dense"]) == (6 * 22 * 24, True)
    assert (result["units"]["count"], result["units"]["worst"][0]["unit"]) == (6, 0)
    assert {"mean_iou", "dice"} <= {row["key"] for row in result["metrics"]}
    edge = checked(capsys, monkeypatch, tmp_path / "seg.npz", "--ignore-index", 255, "--region", "boundary:1")
    assert 0 < edge["checks"][0]["result"]["n"] < result["n"]


def test_a_single_image_gives_no_interval_and_no_verdict(tmp_path, capsys, monkeypatch):
    z, y = images(1)
    np.savez(tmp_path / "one.npz", logits=z, labels=y)
    document = checked(capsys, monkeypatch, tmp_path / "one.npz", "--ignore-index", 255)
    verdict = document["checks"][0]["result"]["verdict"]
    assert verdict["calibrated"] is None
    assert verdict["headline"].startswith("Too few rows or units to judge: ECE ")


def test_a_folder_of_cases(tmp_path, capsys, monkeypatch):
    z, y = images()
    for k in range(6):
        np.savez(tmp_path / f"case{k}.npz", logits=z[k : k + 1], labels=y[k : k + 1])
    document = checked(capsys, monkeypatch, tmp_path, "--ignore-index", 255)
    assert document["checks"][0]["result"]["units"]["worst"][0]["unit"] == "case0"
    assert len(document["checks"][0]["files"]) == 6


def test_half_of_the_data_ignored_and_all_of_it(tmp_path, capsys, monkeypatch):
    z, y = rows(300)
    np.savez(tmp_path / "none.npz", logits=z, labels=np.full_like(y, 2))
    document = checked(capsys, monkeypatch, tmp_path / "none.npz", "--ignore-index", 2)
    assert document["checks"][0]["result"]["verdict"]["headline"] == "No data."
    assert document["checks"][0]["advice"] == ["No prediction was left to judge: see which labels are ignored."]


def test_fail_if_decides_the_exit_code(tmp_path, capsys, monkeypatch):
    path = saved(tmp_path)
    code, out, _ = call(capsys, monkeypatch, "check", path, "--fail-if", "ece_low > 3% or accuracy < 0.1")
    assert code == 1
    assert "Failed: ece_low > 3% or accuracy < 0.1 (ece_low = " in " ".join(out.split())
    assert call(capsys, monkeypatch, "check", path, "--fail-if", "ece > 0.9")[0] == 0
    code, _, error = call(capsys, monkeypatch, "check", path, "--fail-if", "ece_lo > 0.9")
    assert code == 2
    assert "--fail-if knows no 'ece_lo', did you mean ece_low? There are n, signed_gap, ece, " in error
    code, _, error = call(capsys, monkeypatch, "check", path, "--fail-if", "mean_iou > 0.9")
    assert code == 2
    assert "cannot be judged: these data give no mean_iou" in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.npz"], "there is no file 'nothing.npz'"),
        (["preds.npz", "--report", "out.txt"], "must end in .html"),
        (["preds.npz", "--report", "no/such/out.html"], "there is no folder 'no/such'"),
        (["preds.npz", "preds.npz", "--save", "x.npz"], "--save keeps the statistics of one input"),
        (["preds.npz", "--images", "."], "add --report"),
        (["preds.npz", "--images", "none", "--report", "x.html"], "--images 'none' is no folder"),
        (["preds.npz", "--figures", "preds.npz"], "--figures 'preds.npz' is a file; name a folder"),
        (["bare.npz"], "has no labels"),
        (["pickled.npz"], "pickle"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path, capsys, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    saved(tmp_path)
    np.savez(tmp_path / "bare.npz", logits=rows(50)[0])
    np.savez(tmp_path / "pickled.npz", logits=np.array([{}], dtype=object), labels=np.zeros(1, np.int64))
    code, out, error = call(capsys, monkeypatch, "check", *words)
    assert (code, out) == (2, "")
    assert error.startswith("confide: ")
    assert said in error


def halves(folder, capsys, monkeypatch):
    """Two shards of one file, saved, and the whole."""
    z, y = rows()
    site = np.array(["a", "b", "c"])[np.arange(4000) % 3]
    for name, part in (("whole", slice(None)), ("one", slice(0, 1500)), ("two", slice(1500, None))):
        np.savez(folder / f"{name}.npz", logits=z[part], labels=y[part], site=site[part])
    for name in ("one", "two"):
        words = ("check", folder / f"{name}.npz", "--group", "site", "--save", folder / f"{name}.stats.npz")
        assert call(capsys, monkeypatch, *words)[0] == 0
    return [folder / f"{name}.stats.npz" for name in ("one", "two")]


def test_merged_statistics_give_the_numbers_of_the_whole_file(tmp_path, capsys, monkeypatch):
    shards = halves(tmp_path, capsys, monkeypatch)
    code, out, _ = call(capsys, monkeypatch, "merge", *shards, "-o", tmp_path / "all.stats.npz")
    assert code == 0
    assert "4,000 predictions from 2 files" in out
    merged = checked(capsys, monkeypatch, tmp_path / "all.stats.npz", "--group", "site")["checks"][0]
    whole = checked(capsys, monkeypatch, tmp_path / "whole.npz", "--group", "site")["checks"][0]
    assert merged["result"] == whole["result"] | {"temperature": None}  # which needs the predictions
    assert [Path(f["path"]).name for source in merged["sources"] for f in source["files"]] == ["one.npz", "two.npz"]


def test_a_shard_given_twice_is_refused(tmp_path, capsys, monkeypatch):
    one, two = halves(tmp_path, capsys, monkeypatch)
    copy = tmp_path / "copy.stats.npz"
    copy.write_bytes(one.read_bytes())
    code, _, error = call(capsys, monkeypatch, "merge", one, two, copy, "-o", tmp_path / "all.npz")
    assert code == 2
    assert f"{copy} holds a shard that {one} holds, too" in error
    assert call(capsys, monkeypatch, "merge", one, two, "-o", tmp_path / "all.npz")[0] == 0
    code, _, error = call(capsys, monkeypatch, "merge", tmp_path / "all.npz", two, "-o", tmp_path / "more.npz")
    assert code == 2
    assert "holds a shard that" in error
    code, _, error = call(capsys, monkeypatch, "merge", tmp_path / "one.npz", two, "-o", tmp_path / "more.npz")
    assert code == 2
    assert "holds no saved statistics; confide check --save writes them" in error
    code, _, error = call(capsys, monkeypatch, "merge", tmp_path / "none.npz", "-o", tmp_path / "more.npz")
    assert (code, error) == (2, f"confide: there is no file '{tmp_path / 'none.npz'}'\n")
    code, _, error = call(capsys, monkeypatch, "merge", one, two, "-o", tmp_path / "none" / "all.npz")
    assert (code, "there is no folder" in error) == (2, True)


def test_errors_name_options_not_keywords(tmp_path, capsys, monkeypatch):
    code, _, error = call(capsys, monkeypatch, "check", saved(tmp_path), "--region", "nope")
    assert (code, "confide: --region 'nope' is unknown; it may be 'all'" in error) == (2, True)


def test_saved_statistics_refuse_what_needs_predictions(tmp_path, capsys, monkeypatch):
    one, _ = halves(tmp_path, capsys, monkeypatch)
    code, _, error = call(capsys, monkeypatch, "check", one, "--unit", "site")
    assert (code, "--unit needs the predictions themselves" in error) == (2, True)
    code, _, error = call(capsys, monkeypatch, "check", one, "--group", "age")
    assert (code, "was saved without --group age; it has site" in error) == (2, True)


def test_the_same_items_are_compared_in_pairs(tmp_path, capsys, monkeypatch):
    z, y = rows()
    np.savez(tmp_path / "a.npz", logits=z, labels=y)
    np.savez(tmp_path / "b.npz", logits=z / 2, labels=y)
    np.savez(tmp_path / "c.npz", logits=z[::-1] / 2, labels=y[::-1])
    pair = checked(capsys, monkeypatch, tmp_path / "a.npz", tmp_path / "b.npz")["comparisons"][0]
    apart = checked(capsys, monkeypatch, tmp_path / "a.npz", tmp_path / "c.npz")["comparisons"][0]
    assert pair["paired"]
    assert pair["note"].startswith("paired by rows")
    assert not apart["paired"]
    assert apart["note"].startswith("not paired")
    for mine, other in zip(pair["changes"], apart["changes"], strict=True):
        assert mine["difference"] == pytest.approx(other["difference"], abs=1e-12)
        assert mine["high"] - mine["low"] < other["high"] - other["low"]
    assert pair["headline"].startswith("Better calibrated: ECE ")
    assert pair["changes"][3]["difference"] == 0
    out = call(capsys, monkeypatch, "check", tmp_path / "a.npz", tmp_path / "b.npz")[1]
    assert out.startswith("a.npz to b.npz: Better calibrated")
    worse = call(
        capsys, monkeypatch, "check", tmp_path / "b.npz", tmp_path / "a.npz", "--fail-if", "ece_change_low > 0"
    )
    assert worse[0] == 1


def test_the_surest_errors_are_those_of_a_slow_search():
    z, y = (torch.from_numpy(x) for x in rows(3000, sharper=40.0))
    found = Misses(-100)
    for start in range(0, 3000, 700):
        part = slice(start, start + 700)
        found.observe(z[part], y[part], np.arange(3000)[part], "logits")
    confidence, guess = z.double().softmax(1).max(1)
    margin = -torch.log(-torch.expm1(torch.log_softmax(z.double(), 1).amax(1)))
    wrong = [i for i in torch.sort(margin, descending=True, stable=True).indices.tolist() if guess[i] != y[i]][:MOST]
    assert [row["row"] for row in found.kept] == wrong
    assert [row["confidence"] for row in found.kept] == pytest.approx(confidence[wrong].tolist(), abs=1e-12)
    assert all(
        (row["label"], row["predicted"]) == (int(y[i]), int(guess[i])) for row, i in zip(found.kept, wrong, strict=True)
    )


def test_ids_are_whole_numbers_or_words():
    assert plain_ids(np.array([1.0, 2.0])).tolist() == [1, 2]
    assert plain_ids(np.array([1.5, 2.0])).tolist() == ["1.5", "2.0"]
    assert plain_ids(np.array([True, False])).tolist() == ["True", "False"]


def test_progress_reaches_the_number_of_predictions(tmp_path):
    found, done = open_checked(saved(tmp_path), Options()), []
    gather(found, Options(), done.append)
    assert sum(done) == found.items == 4000


def test_json_can_be_read_anywhere(tmp_path, capsys, monkeypatch):
    path = tmp_path / "out.json"
    assert call(capsys, monkeypatch, "check", saved(tmp_path), "--json", path)[0] == 0
    assert json.loads(path.read_text(), parse_constant=pytest.fail)["schema"] == 1


def test_labels_that_do_not_fit_are_named(tmp_path):
    np.savez(tmp_path / "x.npz", logits=rows(50)[0], labels=np.zeros(49, np.int64))
    with pytest.raises(InputError, match="fit no axis"):
        open_checked(tmp_path / "x.npz", Options())
