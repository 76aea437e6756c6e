"""Numbers that say how far a network's confidence can be believed. Sums in, number out."""

from typing import Any

from confide.metrics.accuracy import Accuracy
from confide.metrics.ece import ECE
from confide.metrics.metric import Metric
from confide.metrics.nll import NLL

ALL: tuple[type[Metric[Any]], ...] = (Accuracy, ECE, NLL)

__all__ = ["ALL", "ECE", "NLL", "Accuracy", "Metric"]
