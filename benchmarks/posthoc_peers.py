"""Calibrators of other libraries, called as their own documentation says, for the comparison in posthoc.py.

Each takes (logits, labels) and gives a function from logits to probabilities. Those that are not installed are skipped.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Fit = Callable[[Array, Array], Callable[[Array], Array]]


def softmax(z: Array) -> Array:
    """Probabilities in float64, as netcal needs them."""
    wide = z.astype(np.float64)
    found: Array = np.exp(wide - np.logaddexp.reduce(wide, 1, keepdims=True))
    return found


def scikit_learn(method: str) -> Fit:
    def fit(z: Array, y: Array) -> Callable[[Array], Array]:
        from sklearn.base import BaseEstimator, ClassifierMixin
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        class Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
            def fit(self, x: Array, _: Array) -> "Given":
                self.classes_ = np.arange(x.shape[1])
                return self

            def decision_function(self, x: Array) -> Array:
                return x

            def predict(self, x: Array) -> Array:
                found: Array = x.argmax(1)
                return found

        model = CalibratedClassifierCV(FrozenEstimator(Given().fit(z, y)), method=method).fit(z, y)
        return model.predict_proba  # type: ignore[no-any-return]

    return fit


def probmetrics(name: str, **settings: Any) -> Fit:
    def fit(z: Array, y: Array) -> Callable[[Array], Array]:
        from probmetrics import calibrators

        model = getattr(calibrators, name)(**settings).fit(softmax(z), y)
        return lambda new: model.predict_proba(softmax(new))

    return fit


def one_vs_rest(name: str, **settings: Any) -> Fit:
    def fit(z: Array, y: Array) -> Callable[[Array], Array]:
        from probmetrics import calibrators

        single = getattr(calibrators, name)(**settings)
        model = calibrators.MulticlassOneVsRestCalibrator(single).fit(softmax(z), y)
        return lambda new: model.predict_proba(softmax(new))

    return fit


def netcal(room: str, name: str, *args: Any) -> Fit:
    def fit(z: Array, y: Array) -> Callable[[Array], Array]:
        import importlib

        model = getattr(importlib.import_module(f"netcal.{room}"), name)(*args)
        model.fit(softmax(z), y)
        return lambda new: model.transform(softmax(new))

    return fit


# Family: name, fit, and up to how many classes it ends in reasonable time.
PEERS: dict[str, tuple[tuple[str, Fit, int], ...]] = {
    "temperature": (
        ("scikit-learn temperature", scikit_learn("temperature"), 10_000),
        ("probmetrics bisection", probmetrics("TemperatureScalingCalibrator"), 10_000),
        ("netcal TemperatureScaling", netcal("scaling", "TemperatureScaling"), 200),
        ("LBFGS recipe (probmetrics' port)", probmetrics("GuoTemperatureScalingCalibrator"), 10_000),
    ),
    "ensemble": (("probmetrics ETS (ce)", probmetrics("ETSCalibrator", loss="ce"), 200),),
    "vector": (
        ("probmetrics VectorScaling", probmetrics("VectorScalingCalibrator"), 200),
        ("probmetrics SVS", probmetrics("SVSCalibrator"), 200),
        ("netcal LogisticCalibration", netcal("scaling", "LogisticCalibration"), 20),
    ),
    "matrix": (
        ("probmetrics MatrixScaling", probmetrics("MatrixScalingCalibrator"), 200),
        ("probmetrics SMS", probmetrics("SMSCalibrator"), 200),
        ("probmetrics Dirichlet", probmetrics("DirichletCalibrator"), 20),
    ),
    "platt": (("scikit-learn sigmoid", scikit_learn("sigmoid"), 200),),
    "beta": (("betacal, one vs rest", one_vs_rest("BetacalCalibrator"), 200),),
    "isotonic": (
        ("scikit-learn isotonic", scikit_learn("isotonic"), 10_000),
        ("netcal IsotonicRegression", netcal("binning", "IsotonicRegression"), 200),
    ),
    "venn-abers": (("venn-abers, one vs rest", one_vs_rest("BinaryVennAbersCalibrator"), 200),),
    "binning": (
        ("netcal HistogramBinning", netcal("binning", "HistogramBinning", 15), 200),
        ("netcal BBQ", netcal("binning", "BBQ"), 20),
    ),
}
