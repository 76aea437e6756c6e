"""Intervals hold the truth as often as they say, also for calibrated models; verdicts and comparisons say what is."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from confide import Audit, compare
from confide.metrics import ECE, NLL, Accuracy, AdaptiveECE, DebiasedECE, Grouped, SignedGap

COVERAGE = Path(__file__).parents[2] / "benchmarks" / "coverage.py"
SPEC = importlib.util.spec_from_file_location("coverage", COVERAGE)
coverage = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(coverage)
MODELS = 120


@pytest.mark.parametrize("n", [200, 2000])
@pytest.mark.parametrize("calibrated", [True, False])
def test_the_interval_of_ece_holds_the_truth(n, calibrated, monkeypatch):
    monkeypatch.setattr(coverage, "MANY", 30_000)
    share = coverage.coverage(0, calibrated, n, MODELS)
    low = 0.95 - 3 * math.sqrt(0.95 * 0.05 / MODELS)  # the full run, with 500 models, is `benchmarks/coverage.py`
    assert share >= low


def draw(n, sharpen=1.0, seed=0, classes=4):
    generator = torch.Generator().manual_seed(seed)
    z = 2 * torch.randn((n, classes), generator=generator)
    y = torch.multinomial(z.softmax(1), 1, generator=generator)[:, 0]
    return z * sharpen, y


def estimate(metric, z, y, **side):
    metric.update(z, y, **side)
    return metric.estimate()


def test_a_calibrated_model_is_called_that():
    found = estimate(ECE(), *draw(500))
    assert found.low == 0.0
    assert found.value == pytest.approx(found.chance, rel=0.6)
    assert "consistent with perfect calibration" in found.verdict


def test_overconfidence_is_told_in_points():
    z, y = draw(4000, sharpen=2.0)
    found = estimate(SignedGap(), z, y)
    assert found.verdict.startswith(f"Overconfident by {100 * found.value:.1f} points (95 % interval ")
    assert 0 < found.low < found.value < found.high
    assert estimate(SignedGap(), z / 4, y).verdict.startswith("Underconfident by ")
    assert estimate(SignedGap(), *draw(4000)).verdict.startswith("Neither over- nor underconfident on average")


def test_what_chance_shows_shrinks_with_n():
    chances = [estimate(ECE(), *draw(n)).chance for n in (100, 1000, 10_000)]
    assert chances[0] > 2 * chances[1] > 4 * chances[2]


def test_correlated_pixels_widen_the_interval():
    generator = torch.Generator().manual_seed(0)
    shift = torch.randn((40, 1, 1, 1), generator=generator)  # some images are much harder than others
    z = 2 * torch.randn((40, 3, 12, 12), generator=generator) + 2
    z[:, :1] += shift.abs() * 3
    right = torch.rand((40, 12, 12), generator=generator) < (0.75 + 0.2 * shift[:, 0])
    y = torch.where(right, z.argmax(1), (z.argmax(1) + 1) % 3)
    for metric in (ECE, Accuracy, NLL, SignedGap):
        rows, units = estimate(metric(), z, y), estimate(metric(), z, y, unit=torch.arange(40))
        assert units.value == rows.value
        assert units.high - units.low > 2 * (rows.high - rows.low), metric


def test_bins_of_equally_many_rows_take_units_where_most_rows_are_nearly_sure():
    generator = torch.Generator().manual_seed(0)
    z = 12 * torch.randn((6000, 10), generator=generator)  # ten of fifteen bins lie above a confidence of 0.99
    y = torch.where(torch.rand(6000, generator=generator) < 0.9, z.argmax(1), torch.zeros(6000, dtype=torch.int64))
    for metric in (AdaptiveECE, DebiasedECE, lambda: AdaptiveECE(ties="released")):
        rows, units = estimate(metric(), z, y), estimate(metric(), z, y, unit=torch.arange(6000) // 20)
        assert units.value == rows.value
        assert abs(units.low - rows.low) < 0.01
        assert abs(units.high - rows.high) < 0.01
        assert units.chance < 0.02


def test_groups_are_shown_also_when_they_are_small():
    z, y = draw(600)
    sites = ["large" if i >= 40 else "small" for i in range(600)]
    grouped = Grouped(ECE())
    for part in (slice(0, 100), slice(100, 600)):
        grouped.update(z[part], y[part], groups={"site": sites[part]})
    large, small = grouped.table()
    assert (large["site"], large["n"], large["too_few"]) == ("large", 560, False)
    assert large["value"] == ECE()(z[40:], y[40:])
    assert (small["site"], small["n"], small["too_few"]) == ("small", 40, True)
    assert small["verdict"] == "Too few to judge: 40 of 100 rows."
    assert small["value"] == ECE()(z[:40], y[:40])
    both = Grouped(Accuracy())
    both.update(z, y, groups={"site": sites, "even": [i % 2 for i in range(600)]})
    assert [(row["site"], row["even"]) for row in both.table()] == [
        ("large", 0),
        ("large", 1),
        ("small", 0),
        ("small", 1),
    ]
    with pytest.raises(ValueError, match="groups must have the columns site"):
        grouped.update(z, y, groups={"sex": sites})


def audit(z, y, **side):
    found = Audit(z.shape[1])
    found.update(z, y, **side)
    return found


def test_comparison_of_a_model_with_its_calibrated_self():
    z, y = draw(3000, sharpen=2.0)
    unit = torch.arange(3000) // 10
    found = compare(audit(z, y, unit=unit), audit(z / 2, y, unit=unit))
    assert found.paired
    ece, nll, _, accuracy = found.changes
    assert (ece.verdict, nll.verdict, accuracy.verdict) == ("better", "better", "no detectable change")
    assert (accuracy.difference, accuracy.low, accuracy.high) == (0.0, 0.0, 0.0)  # dividing logits keeps every argmax
    assert ece.low < ece.difference == ece.b - ece.a < ece.high < 0
    assert found.headline.startswith("Better calibrated: ECE -")
    apart = compare(audit(z, y), audit(z / 2, y))
    assert not apart.paired
    assert apart.changes[3].high > 0
    assert compare(audit(z, y, unit=unit), audit(z, y, unit=unit)).headline.startswith("No detectable change")


def test_comparison_needs_the_same_data():
    z, y = draw(100)
    with pytest.raises(ValueError, match="cannot compare: classes is 4 and 3"):
        compare(Audit(4), Audit(3))
    unit = torch.arange(100)
    with pytest.raises(ValueError, match="100 rows and 99, though the units are the same"):
        compare(audit(z, y, unit=unit % 10), audit(z[:99], y[:99], unit=unit[:99] % 10))


def test_paired_intervals_hold_the_truth():
    """Two models of equal error: the interval of their difference holds 0."""
    inside = []
    for seed in range(30):
        z, y = draw(600, sharpen=1.5, seed=seed)
        other = z + 0.3 * torch.randn(z.shape, generator=torch.Generator().manual_seed(seed + 500))
        third = z + 0.3 * torch.randn(z.shape, generator=torch.Generator().manual_seed(seed + 1000))
        unit = torch.arange(600) // 15
        change = compare(audit(other, y, unit=unit), audit(third, y, unit=unit)).changes[1]
        inside.append(change.low <= 0 <= change.high)
    assert np.mean(inside) >= 0.8
