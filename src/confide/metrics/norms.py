"""From the gaps of bins to one number. Arrays are (..., bins): shares of the rows, gaps, and numbers of rows."""

from __future__ import annotations

import numpy as np

from confide.metrics.intervals import Array


def mean_absolute(share: Array, gap: Array, count: Array) -> Array:
    """l1: ECE."""
    return np.asarray((share * np.abs(gap)).sum(-1))


def root_mean_square(share: Array, gap: Array, count: Array) -> Array:
    """l2: RMSCE."""
    return np.asarray(np.sqrt((share * gap**2).sum(-1)))


def largest(share: Array, gap: Array, count: Array) -> Array:
    """l-infinity over bins that hold something: MCE."""
    return np.asarray(np.where(share > 0, np.abs(gap), 0.0).max(-1))


def class_mean(share: Array, gap: Array, count: Array) -> Array:
    """The mean over classes of l1: classwise ECE. Arrays are (..., classes, bins)."""
    return np.asarray((share * np.abs(gap)).sum(-1).mean(-1))
