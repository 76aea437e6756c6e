"""Calibrators against numbers of the authors' own code and of netcal in float64.

Fitted on the first n_val rows of each set, looked at on the rest.
"""

from pathlib import Path

import numpy as np
import pytest

from confide.posthoc import (
    EnsembleTemperature,
    IsotonicMulti,
    IsotonicOVR,
    Spline,
    Temperature,
    VectorScaling,
    one_vs_rest,
)

GOLDEN = np.load(Path(__file__).with_name("posthoc.npz"), allow_pickle=False)
SETS = ("M1_random", "M2_overconfident")
pytestmark = pytest.mark.parametrize("name", SETS)


def halves(name):
    z, y, n = GOLDEN[f"{name}/logits"], GOLDEN[f"{name}/labels"], int(GOLDEN[f"{name}/n_val"])
    return z[:n], y[:n], z[n:]


def test_temperature(name):
    z, y, test = halves(name)
    found = Temperature().fit(z, y)
    assert found.temperature_ == pytest.approx(float(GOLDEN[f"{name}/mixnmatch/T_ce"][0]), rel=1e-6)
    assert np.allclose(found.predict_proba(test), GOLDEN[f"{name}/netcal/TemperatureScaling"], atol=1e-6)
    brier = Temperature(objective="brier").fit(z, y)
    assert brier.temperature_ == pytest.approx(float(GOLDEN[f"{name}/mixnmatch/T_mse"][0]), rel=1e-6)


@pytest.mark.parametrize("objective", ["nll", "ece"])
def test_the_grid_search_of_the_papers(name, objective):
    z, y, _ = halves(name)
    found = Temperature(objective=objective, search="focal_calibration").fit(z, y)
    assert found.temperature_ == float(GOLDEN[f"{name}/focalcal/T_{objective}"])


def test_the_lbfgs_recipe_stops_early(name):
    z, y, _ = halves(name)
    found = Temperature().fit(z, y)
    stopped = float(GOLDEN[f"{name}/guo/T_lbfgs"])
    assert abs(stopped / found.temperature_ - 1) > 0.03
    assert Temperature().fit(z / stopped, y).nll_before_ > found.nll_after_


def test_ensemble(name):
    z, y, test = halves(name)
    found = EnsembleTemperature(objective="brier").fit(z, y)
    assert np.allclose(found.weights_, GOLDEN[f"{name}/mixnmatch/ETS_weights"], atol=1e-6)
    assert np.allclose(found.predict_proba(test), GOLDEN[f"{name}/mixnmatch/ETS_probs"], atol=1e-6)


@pytest.mark.parametrize(("kind", "key"), [(IsotonicMulti, "IRM_probs"), (IsotonicOVR, "IROvA_probs")])
def test_isotonic_without_its_bounds(name, kind, key, monkeypatch):
    monkeypatch.setattr(one_vs_rest, "modest", lambda value, count: np.clip(value, 1e-12, 1))
    monkeypatch.setattr(kind, "guarded", lambda self: False)
    z, y, test = halves(name)
    found = kind().fit(z, y)
    golden = GOLDEN[f"{name}/mixnmatch/{key}"]  # which does not normalise
    assert np.allclose(found.predict_proba(test), golden / golden.sum(1, keepdims=True), atol=1e-8)


def test_vector_scaling_is_at_least_as_likely(name):
    z, y, _ = halves(name)
    assert VectorScaling(strength=0.0).fit(z, y).nll_after_ <= Temperature().fit(z, y).nll_after_


def test_spline_is_near_the_release(name):
    z, y, test = halves(name)
    found = Spline().fit(z, y).predict_proba(test)[np.arange(len(test)), test.argmax(1)]
    gap = abs(found - GOLDEN[f"{name}/spline/top_conf_natural6"])
    assert np.median(gap) < 0.003
    assert gap.max() < 0.03
