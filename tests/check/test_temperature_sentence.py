"""What one temperature would do: the planted one is found, on rows that count, and judged on others."""

import numpy as np
import pytest
import torch
from planted import checked, images, rows, saved

import confide
from confide.metrics.regions import region_mask
from confide.report.check import temperature
from confide.report.check.temperature import Sample
from confide.report.check.words import temperature as words


def sampled(z, y, step=700, ignore_index=-100, region="all"):
    z, y = torch.from_numpy(z), torch.from_numpy(y)
    sample = Sample(y.numel(), z.shape[1], ignore_index, region)
    for start in range(0, len(z), step):
        sample.observe(z[start : start + step], y[start : start + step])
    return sample


def test_the_planted_temperature_is_found(tmp_path, capsys, monkeypatch):
    check = checked(capsys, monkeypatch, saved(tmp_path))["checks"][0]
    found = check["result"]["temperature"]
    assert found["value"] == pytest.approx(2, rel=0.05)
    assert found["n"] == 4000
    assert found["removes"] == 1 - found["ece_after"] / found["ece_before"] > 0.8
    z, y = (torch.from_numpy(x) for x in rows())
    assert found["ece_before"] == pytest.approx(confide.ECE()(z, y), abs=1e-6)
    assert found["ece_after"] == pytest.approx(confide.ECE()(z / found["value"], y), abs=5e-3)


def test_probabilities_have_the_temperature_of_their_logits():
    z, y = rows()
    p = torch.from_numpy(z).double().softmax(1).numpy()
    assert sampled(p, y).judge("probs")["value"] == pytest.approx(sampled(z, y).judge("logits")["value"], rel=1e-4)


def test_a_fair_sample_is_kept_of_many_rows(monkeypatch):
    monkeypatch.setattr(temperature, "ROOM", 2000 * 5)
    z, y = rows(20_000)
    sample = sampled(z, y)
    kept = torch.cat(sample.y)
    assert len(kept) == pytest.approx(2000, abs=200)
    assert sample.judge("logits")["value"] == pytest.approx(2, rel=0.1)
    assert torch.bincount(kept) / len(kept) == pytest.approx(np.bincount(y) / len(y), abs=0.04)


@pytest.mark.parametrize("region", ["all", "boundary:1", "class:2"])
def test_only_pixels_that_count_are_looked_at(region):
    z, y = images()
    sample = sampled(z, y, step=4, ignore_index=255, region=region)
    mask = torch.from_numpy(y) != 255
    if inside := region_mask(region, 255):
        mask &= inside(torch.from_numpy(y))
    row, place = mask.flatten(1).nonzero(as_tuple=True)
    assert torch.equal(torch.cat(sample.y), torch.from_numpy(y)[mask])
    assert torch.equal(torch.cat(sample.z), torch.from_numpy(z).flatten(2)[row, :, place])


def test_nothing_is_said_where_there_is_nothing_to_say(tmp_path, capsys, monkeypatch):
    z, y = rows(sharper=1.0)
    np.savez(tmp_path / "fine.npz", logits=z, labels=y)
    assert checked(capsys, monkeypatch, tmp_path / "fine.npz")["checks"][0]["result"]["temperature"] is None
    assert sampled(z[:50], y[:50]).judge("logits") is None
    right = z.argmax(1)  # no temperature is small enough
    assert sampled(z, right).judge("logits") is None
    assert words(None) == ""
    assert words({"value": 1.834, "removes": 0.876}) == "One temperature, T = 1.83, would remove 88 % of it."
    assert words({"value": 1.01, "removes": -0.2}) == "One temperature, T = 1.01, would not lower it."
