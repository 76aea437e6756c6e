"""Audit: the numbers of the metrics, from one pass; the same after any split, merge, file and back."""

import json
import math

import numpy as np
import pytest
import torch

from confide import Audit
from confide.metrics import (
    ECE,
    MCE,
    NLL,
    Accuracy,
    AdaptiveECE,
    BalancedAccuracy,
    Brier,
    ClasswiseECE,
    Dice,
    MeanIoU,
    MeanOver,
    SmoothECE,
)
from confide.testing.metric_checks import pictures

SITES = ["a", "b"] * 15


@pytest.fixture
def data():
    return pictures(30)


def audit(z, y, part=slice(None), **options):
    found = Audit(4, **options)
    numbers = torch.arange(len(y))[part]
    found.update(z[part], y[part], unit=[f"p{int(i) // 2}" for i in numbers], groups={"site": SITES[part]})
    return found


def test_the_table_holds_the_metrics(data):
    z, y = data
    result = audit(z, y).result()
    found = {row["key"]: row for row in result["metrics"]}
    kinds = {
        "ece": ECE,
        "adaptive_ece": AdaptiveECE,
        "classwise_ece": ClasswiseECE,
        "mce": MCE,
        "smooth_ece": SmoothECE,
        "nll": NLL,
        "brier": Brier,
        "accuracy": Accuracy,
        "balanced_accuracy": BalancedAccuracy,
        "mean_iou": MeanIoU,
        "dice": Dice,
    }
    for key, kind in kinds.items():
        metric = kind()
        metric.update(z, y, unit=[f"p{i // 2}" for i in range(30)])
        wanted = metric.estimate()
        assert found[key]["value"] == wanted.value, key
        if key != "adaptive_ece":  # a cluster keeps a coarser grid there
            assert (found[key]["low"], found[key]["high"]) == (wanted.low, wanted.high), key


def test_its_data_is_json(data):
    result = audit(*data).result()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["schema"] == 1
    assert result["n"] == 900
    assert result["dense"]
    assert result["temperature"] is None
    assert len(result["bins"]) == 15
    assert sum(row["count"] for row in result["bins"]) == sum(row["count"] for row in result["histogram"]) == 900
    assert all(row["low"] <= row["accuracy"] <= row["high"] for row in result["bins"] if row["count"])
    coverage = [row["coverage"] for row in result["risk_coverage"]]
    assert coverage == sorted(coverage)
    assert coverage[-1] == 1.0
    assert result["risk_coverage"][-1]["risk"] == pytest.approx(1 - Accuracy()(*data))


def test_classes_groups_and_units(data):
    z, y = data
    result = audit(z, y).result()
    errors = ClasswiseECE()
    errors.update(z, y)
    assert [row["ece"] for row in result["classes"]] == errors.per_class()
    assert sum(row["count"] for row in result["classes"]) == 900
    a, b = result["groups"]
    assert (a["column"], a["value"], a["n"], b["value"]) == ("site", "a", 450, "b")
    assert a["ece"]["value"] == ECE()(z[::2], y[::2])
    units = result["units"]
    assert units["count"] == 15
    means = [ECE()(z[i : i + 2], y[i : i + 2]) for i in range(0, 30, 2)]
    assert units["mean"]["ece"]["value"] == pytest.approx(sum(means) / 15, abs=1e-12)
    assert units["mean"]["ece"]["value"] != pytest.approx(ECE()(z, y), abs=1e-3)  # the mean over units is not the pool
    assert units["worst"][0]["ece"] == max(means)
    assert math.isclose(MeanOver(ECE())(z, y), sum(ECE()(z[i : i + 1], y[i : i + 1]) for i in range(30)) / 30)


def test_any_split_merge_and_file_gives_the_same(data, tmp_path):
    z, y = data
    whole = audit(z, y)
    parts = [audit(z, y, slice(i, i + 7)) for i in range(0, 30, 7)]
    for number, part in enumerate(parts):
        part.save(tmp_path / f"{number}.stats.npz")
    loaded = [Audit.load(tmp_path / f"{number}.stats.npz") for number in (3, 0, 4, 2, 1)]
    merged = loaded[0]
    for part in loaded[1:]:
        merged = merged + part
    assert merged.sums == whole.sums
    assert merged.result() == whole.result()
    merged.save(tmp_path / "all.npz")
    again = Audit.load(tmp_path / "all.npz")
    assert again.result() == whole.result()
    with pytest.raises(ValueError, match=r"cannot merge: 1 shard\(s\) are in both .* give each once"):
        again.merge(Audit.load(tmp_path / "2.stats.npz"))
    with np.load(tmp_path / "all.npz", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)


def test_what_is_no_audit_is_refused(tmp_path, data):
    np.savez(tmp_path / "logits.npz", logits=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="holds no saved statistics of confide"):
        Audit.load(tmp_path / "logits.npz")
    with pytest.raises(ValueError, match="classes is 4 here and 5 there"):
        Audit(4).merge(Audit(5))
    with pytest.raises(ValueError, match=r"Audit\(classes=5\) was given 4 classes"):
        Audit(5).update(*data)


def test_a_refused_batch_adds_nothing(data):
    z, y = data
    found = audit(z, y)
    before = found.result()
    with pytest.raises(ValueError, match="outside"):
        found.update(z, y + 1, unit=torch.arange(30))
    assert found.result() == before


def test_an_image_that_is_all_ignored_is_no_unit(data):
    z, y = data
    y = y.clone()
    y[3] = -100
    found = Audit(4)
    found.update(z, y, unit=torch.arange(30), groups={"image": torch.arange(30), "site": SITES})
    result = found.result()
    assert result["units"]["count"] == 29
    rows = {(row["column"], row["value"]): row for row in result["groups"]}
    assert len(rows) == 32
    assert rows["image", 3]["n"] == 0
    assert rows["image", 3]["too_few"]
    assert rows["site", "b"]["n"] == 14 * 30


def test_before_any_data():
    result = Audit(3).result()
    assert result["verdict"]["headline"] == "No data."
    assert result["n"] == 0
    json.dumps(result, allow_nan=False)


def test_verdicts():
    generator = torch.Generator().manual_seed(0)
    z = 2 * torch.randn((5000, 4), generator=generator)
    y = torch.multinomial(z.softmax(1), 1, generator=generator)[:, 0]
    words = {1.0: "none", 2.0: "over", 0.4: "under"}
    for scale, direction in words.items():
        found = Audit(4)
        found.update(z * scale, y)
        verdict = found.result()["verdict"]
        assert verdict["direction"] == direction
        assert verdict["calibrated"] == (direction == "none")
    assert verdict["headline"].startswith("Underconfident by ")
    assert "where chance alone would show " in verdict["headline"]


def test_soft_targets_weights_and_probabilities(data):
    z, y = data
    q = torch.nn.functional.one_hot(y, 4).movedim(-1, 1).double()
    hard, soft, probs = Audit(4), Audit(4), Audit(4, inputs="probs")
    hard.update(z, y)
    soft.update(z, q, sample_weight=torch.ones(30))
    probs.update(z.double().softmax(1), y)
    for other in (soft, probs):
        pairs = zip(hard.result()["metrics"], other.result()["metrics"], strict=True)
        assert all(a["value"] == pytest.approx(b["value"], abs=1e-6) for a, b in pairs)
