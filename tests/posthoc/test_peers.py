"""Agreement with other libraries, where those are right."""

import numpy as np
import pytest
import sklearn
import torch
from betacal import BetaCalibration
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted
from venn_abers import VennAbers as PeerVennAbers

from confide.posthoc import (
    Beta,
    IsotonicOVR,
    MatrixScaling,
    Temperature,
    VectorScaling,
    VennAbers,
    one_vs_rest,
    venn_abers,
)

OLD = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8)


def drawn(n=3000, classes=6, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, classes)) * 3
    p = np.exp(z / 2)
    p /= p.sum(1, keepdims=True)
    return z, (p.cumsum(1) < rng.random((n, 1))).sum(1)


def scores(n, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 0.7, n)
    p = p.round(1).clip(0.05, 0.95) if ties else p
    return p, (rng.random(n) < p**1.7).astype(int)


def logit(p):
    return np.log(p) - np.log1p(-p)


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose input is its logits."""

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, x):
        return x

    def predict(self, x):
        return self.classes_[x.argmax(1)]


@pytest.mark.skipif(OLD, reason="scikit-learn scales temperatures from 1.8 on, which needs Python 3.11")
def test_scikit_learns_temperature():
    z, y = drawn()
    peer = CalibratedClassifierCV(FrozenEstimator(Given().fit(z, y)), method="temperature").fit(z, y)
    assert np.allclose(Temperature().fit(z, y).predict_proba(z), peer.predict_proba(z), atol=1e-4)


def test_scikit_learns_clone_and_check():
    first = Temperature(objective="brier", ignore_index=5)
    second = clone(first)
    assert second is not first
    assert second.get_params() == first.get_params()
    with pytest.raises(ValueError, match="not fitted"):
        second.transform(np.zeros((2, 3)))
    check_is_fitted(Temperature().fit(*drawn()))


def test_vector_scaling_has_no_slope_left():
    z, y = drawn()
    found = VectorScaling(strength=0.0).fit(z, y)
    miss = found.predict_proba(z) - np.eye(6)[y]
    assert abs((miss * z).mean(0)).max() < 1e-6
    assert abs(miss.mean(0)).max() < 1e-6


def test_scikit_learns_logistic_regression_is_matrix_scaling():
    z, y = drawn()
    peer = LogisticRegression(C=1e10, tol=1e-10, max_iter=5000).fit(z, y)
    found = MatrixScaling(strength=0.0).fit(z, y)
    assert np.allclose(found.predict_proba(z), peer.predict_proba(z), atol=1e-4)


def test_matrix_scaling_has_no_slope_left_with_many_classes():
    z, y = drawn(4000, 40)
    found = MatrixScaling(strength=1.0).fit(z, y)
    n = len(z)
    spread = torch.from_numpy(z).var(0).mean().item()
    start = np.eye(40) / Temperature().fit(z, y).temperature_
    cost = np.where(np.eye(40) > 0, spread, 40 * spread)
    miss = found.predict_proba(z) - np.eye(40)[y]
    slope = miss.T @ z / n + cost / n * (found.weight_.numpy() - start)
    assert found.converged_
    assert abs(slope).max() < 1e-3


@pytest.mark.parametrize("n", [50, 500])
def test_betacal(n):
    p, y = scores(n)
    new = np.linspace(0.01, 0.99, 99)
    peer = BetaCalibration("abm").fit(p[:, None], y).predict(new[:, None])
    assert np.allclose(Beta().fit(logit(p), y).predict_proba(logit(new)), peer, atol=1e-3)


def test_betacal_drops_what_would_be_negative():
    p, y = scores(400)
    y = np.where(p > 0.5, 1 - y, y)  # far from any curve with two positive coefficients
    new = np.linspace(0.01, 0.99, 99)
    found = Beta().fit(logit(p), y)
    assert min(float(found.a_.min()), float(found.b_.min())) >= 0
    peer = BetaCalibration("abm").fit(p[:, None], y).predict(new[:, None])
    assert np.allclose(found.predict_proba(logit(new)), peer, atol=2e-3)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.filterwarnings("ignore:All-NaN slice")
def test_venn_abers(ties):
    p, y = scores(400, ties=ties)
    new = np.r_[p[:50], np.linspace(0.001, 0.999, 200)]
    peer = PeerVennAbers()
    peer.fit(np.c_[1 - p, p], y)
    expected = peer.predict_proba(np.c_[1 - new, new])[0][:, 1]
    assert np.allclose(VennAbers().fit(logit(p), y).predict_proba(logit(new)), expected, atol=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_scikit_learns_isotonic_regression(ties, monkeypatch):
    monkeypatch.setattr(one_vs_rest, "modest", lambda value, count: np.clip(value, 1e-12, 1 - 1e-12))
    p, y = scores(400, ties=ties)
    peer = IsotonicRegression(out_of_bounds="clip").fit(p, y)
    new = np.linspace(0.001, 0.999, 500)
    assert np.allclose(IsotonicOVR().fit(logit(p), y).predict_proba(logit(new)), peer.predict(new), atol=1e-9)


def test_venn_abers_merges_neighbours_where_there_are_too_many(monkeypatch):
    p, y = scores(3000)
    exact = VennAbers().fit(logit(p), y).predict_proba(logit(p))
    monkeypatch.setattr(venn_abers, "MOST", 100)
    merged = VennAbers().fit(logit(p), y)
    assert len(merged.value_) < 2000
    assert np.abs(merged.predict_proba(logit(p)) - exact).mean() < 0.01
