"""The wrapper in scikit-learn's own checks, and beside scikit-learn's own calibration."""

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator

from confide.core.errors import CalibrationWarning, KnobError
from confide.posthoc import ALL, Temperature, VectorScaling
from confide.sklearn import Calibrated

OLD = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8)
FLAT = [kind.__name__ for kind in ALL if not kind.card.spatial]


def problem(classes=3, n=900):
    x, y = make_classification(n, 12, n_informative=8, n_classes=classes, random_state=0)
    return x[: n // 2], y[: n // 2], x[n // 2 :], y[n // 2 :]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["Temperature", "Platt"])
def test_scikit_learns_own_checks(method):
    check_estimator(Calibrated(LogisticRegression(), method=method, cv=2), on_skip=None)


@pytest.mark.filterwarnings("ignore::confide.core.errors.CalibrationWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("method", FLAT)
def test_every_method(method, classes):
    x, y, new, _ = problem(classes)
    names = np.array(["ant", "bee", "cat"])[y]
    found = Calibrated(GaussianNB(), method=method, cv=3).fit(x, names)
    p = found.predict_proba(new)
    assert p.shape == (len(new), classes)
    assert np.allclose(p.sum(1), 1)
    assert set(found.predict(new)) <= set(names)


def test_it_helps():
    x, y, new, truth = problem()
    raw = GaussianNB().fit(x, y)
    found = Calibrated(GaussianNB()).fit(x, y)
    assert log_loss(truth, found.predict_proba(new)) < log_loss(truth, raw.predict_proba(new)) - 0.005
    assert np.array_equal(found.predict(new), raw.predict(new))


@pytest.mark.skipif(OLD, reason="scikit-learn scales temperatures from 1.8 on, which needs Python 3.11")
def test_prefit_agrees_with_scikit_learn():
    x, y, new, truth = problem()
    model = LogisticRegression(C=100).fit(x[:200], y[:200])
    ours = Calibrated(model, cv="prefit").fit(new, truth)
    frozen = Calibrated(FrozenEstimator(model)).fit(new, truth)
    peer = CalibratedClassifierCV(FrozenEstimator(model), method="temperature").fit(new, truth)
    assert np.allclose(ours.predict_proba(new), peer.predict_proba(new), atol=1e-4)
    assert np.array_equal(ours.predict_proba(new), frozen.predict_proba(new))
    assert ours.estimator_ is model


def test_a_calibrator_with_settings_and_a_forest():
    x, y, new, truth = problem()
    forest = RandomForestClassifier(20, random_state=0)
    found = Calibrated(forest, method=VectorScaling(strength=3.0)).fit(x, y)
    assert found.calibrator_.strength == 3.0
    assert found.method.__dict__.keys().isdisjoint({"weight_"})  # what was passed is not fitted
    assert np.isfinite(log_loss(truth, found.predict_proba(new)))
    assert cross_val_score(Calibrated(GaussianNB(), method=Temperature()), x, y, cv=2).mean() > 0.5


def test_a_class_that_the_calibration_rows_lack():
    x, y, new, truth = problem()
    model = GaussianNB().fit(x, y)
    with pytest.warns(CalibrationWarning, match="no row of class 2"):
        found = Calibrated(model, method="Platt", cv="prefit").fit(new[truth < 2], truth[truth < 2])
    assert list(found.classes_) == [0, 1, 2]
    assert np.isfinite(np.log(found.predict_proba(new))).all()


def test_unknown_methods_and_folds_are_refused():
    x, y, _, _ = problem()
    with pytest.raises(KnobError, match="method='Magic' is not possible; it takes Temperature"):
        Calibrated(GaussianNB(), method="Magic").fit(x, y)
    with pytest.raises(KnobError, match="cv=1 is not possible: a number of folds from 2, or 'prefit'"):
        Calibrated(GaussianNB(), cv=1).fit(x, y)
