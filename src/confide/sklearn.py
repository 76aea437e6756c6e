"""A calibrated scikit-learn classifier: `Calibrated(estimator, method="Temperature").fit(X, y)`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core.errors import KnobError, MissingExtra
from confide.posthoc import ALL, Calibrator

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.utils import get_tags
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtra("scikit-learn", "sklearn") from error

Array = NDArray[Any]


class Calibrated(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator whose probabilities are calibrated on predictions for rows that it was not trained on.

    method: a calibrator of `confide.posthoc`, by name or as an object with settings.
    cv: how many folds give the predictions to calibrate on; the estimator is then fitted on all rows. "prefit" takes
        the estimator as it is and calibrates on the rows given.
    """

    def __init__(self, estimator: Any = None, method: str | Calibrator = "Temperature", cv: int | str = 5) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv

    def fit(self, X: Any, y: Any) -> Calibrated:
        X, y = validate_data(self, X, y, accept_sparse=True, ensure_all_finite=False)
        check_classification_targets(y)
        estimator = self._given()
        prefit = self.cv == "prefit" or isinstance(estimator, FrozenEstimator)
        self.classes_: Array = estimator.classes_ if prefit else np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"Calibrated can't train when only one class is present: {self.classes_[0]!r}")
        target = np.searchsorted(self.classes_, y)
        self.estimator_ = estimator if prefit else clone(estimator).fit(X, y)
        outputs = logits_of(self.estimator_, X) if prefit else self._out_of_fold(X, y, int(np.bincount(target).min()))
        self.calibrator_ = self._calibrator().fit(outputs, target)
        return self

    def predict_proba(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse=True, ensure_all_finite=False)
        p: Array = self.calibrator_.predict_proba(logits_of(self.estimator_, X))
        return np.c_[1 - p, p] if p.ndim == 1 else p

    def predict(self, X: Any) -> Array:
        guess = self.predict_proba(X).argmax(1)
        found: Array = self.classes_[guess]
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._given()).input_tags
        return tags

    def _given(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression() if self.estimator is None else self.estimator

    def _calibrator(self) -> Calibrator:
        if isinstance(self.method, Calibrator):
            return clone(self.method)  # type: ignore[no-any-return]
        known = {kind.__name__.lower(): kind for kind in ALL}
        if str(self.method).lower() not in known:
            raise KnobError(f"method={self.method!r} is not possible; it takes {', '.join(k.__name__ for k in ALL)}")
        return known[self.method.lower()]()

    def _out_of_fold(self, X: Any, y: Array, rarest: int) -> Array:
        if not isinstance(self.cv, int) or self.cv < 2:
            raise KnobError(f"cv={self.cv!r} is not possible: a number of folds from 2, or 'prefit'")
        folds = StratifiedKFold(max(2, min(self.cv, rarest)), shuffle=True, random_state=0)
        verb = _verb(self.estimator_)
        found = cross_val_predict(self._given(), X, y, cv=folds, method=verb)
        return as_logits(found, verb)


def logits_of(estimator: Any, X: Any) -> Array:
    """The estimator's decision function, or the logarithm of its probabilities."""
    verb = _verb(estimator)
    return as_logits(getattr(estimator, verb)(X), verb)


def as_logits(found: Array, verb: str) -> Array:
    """(N,) for two classes, (N, C) for more."""
    found = np.asarray(found, dtype=np.float64)
    if verb == "decision_function":
        return found
    log_p: Array = np.log(np.clip(found, np.finfo(np.float32).tiny, 1))
    binary: Array = log_p[:, 1] - log_p[:, 0]
    return binary if log_p.shape[1] == 2 else log_p


def _verb(estimator: Any) -> str:
    return "decision_function" if hasattr(estimator, "decision_function") else "predict_proba"
