"""Bins are (a, b], 0 in the first and 1 in the last, in float32 as in float64."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from confide.core.bins import CELLS, Histogram, cell, check_bins, edges

USUAL = [1, 2, 5, 8, 10, 12, 15, 16, 18, 20, 24, 25, 30, 32, 36, 40, 45, 50, 60, 75, 90, 100, 200, 300, 7200]
FLOATS = [torch.float32, torch.float64]


def bin_of(confidence: float, bins: int, dtype: torch.dtype) -> int:
    return int(cell(torch.tensor(confidence, dtype=dtype))) // (CELLS // bins)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bins", USUAL)
def test_a_value_on_an_edge_belongs_to_the_bin_below(bins, dtype):
    assert bin_of(0.0, bins, dtype) == 0
    assert [bin_of(k / bins, bins, dtype) for k in range(1, bins + 1)] == list(range(bins))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bins", [10, 15, 25])
def test_an_edge_is_2_to_the_minus_24_wide(bins, dtype):
    for k in range(1, bins):
        assert bin_of(k / bins + 2.0**-22, bins, dtype) == k
        assert bin_of(k / bins - 2.0**-22, bins, dtype) == k - 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_arithmetic_makes_of_an_edge_is_still_the_edge(dtype):
    tenth = torch.tensor(0.1, dtype=dtype)
    assert int(cell(tenth + tenth + tenth)) == int(cell(torch.tensor(0.3))) == 3 * CELLS // 10 - 1
    assert int(cell(1 - 3 * tenth)) == 7 * CELLS // 10 - 1


@given(st.floats(0, 1, width=32))
def test_both_dtypes_agree_and_the_rule_is_the_written_one(p):
    in_float32, in_float64 = (int(cell(torch.tensor(p, dtype=dtype))) for dtype in FLOATS)
    units = Fraction(round(Fraction(p) * 2**32), 2**32)
    rule = math.ceil((units - Fraction(1, 2**24)) * CELLS) - 1
    assert in_float32 == in_float64 == min(max(rule, 0), CELLS - 1)


def test_half_precision_confidence_is_refused_nowhere_and_lands_where_float32_puts_it():
    p = torch.linspace(0, 1, 777).bfloat16().float()
    assert torch.equal(cell(p), cell(p.double()))


@given(st.lists(st.one_of(st.floats(0, 1, width=32), st.sampled_from([0.0, 1.0, *edges(15), *edges(10)])), max_size=60))
def test_no_bin_loses_anybody(values):
    p = torch.tensor(values, dtype=torch.float64)
    keep = torch.arange(len(values)) % 3 != 0
    histogram = Histogram.of(p, p > 0.5, keep)
    for bins in (1, 10, 15, 7200):
        folded = histogram.fold(bins)
        assert int(folded.count.sum()) == int(keep.sum())
        assert sum(folded.hits.units()) >> 32 == int(((p > 0.5) & keep).sum())
        total = sum(folded.confidence.units()) / 2**32
        assert total == pytest.approx(float(p[keep].sum()), abs=1e-8)


def test_edges_are_the_nearest_floats():
    assert edges(4) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert edges(10)[3] == 0.3  # a running sum of 0.1 gives 0.30000000000000004


@pytest.mark.parametrize("bins", USUAL)
def test_usual_numbers_of_bins_fit_the_grid(bins):
    assert check_bins(bins) == check_bins(np.int64(bins)) == bins


@pytest.mark.parametrize(
    ("bins", "near"),
    [(7, "6 and 8"), (11, "10 and 12"), (14, "12 and 15"), (64, "60 and 72"), (0, "1"), (-3, "1"), (10_000, "7200")],
)
def test_other_numbers_are_refused_with_the_nearest_that_fit(bins, near):
    with pytest.raises(ValueError, match=f"bins={bins} does not divide the grid of 7200 cells.*: {near}$"):
        check_bins(bins)


@pytest.mark.parametrize("bins", [15.0, "15", True, None])
def test_bins_must_be_a_whole_number(bins):
    with pytest.raises(ValueError, match="whole number"):
        check_bins(bins)
