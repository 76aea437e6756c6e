"""Sums are exact, have one representation, and merge in any order."""

from fractions import Fraction
from functools import reduce
from operator import add

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from confide.core.bins import CELLS, Histogram
from confide.core.stats import LIMIT, ONE, Fixed, to_units
from confide.core.sums import Mean
from confide.metrics import ECE

REALS = st.floats(-1e6, 1e6, allow_subnormal=True)


def fixed(*values: float) -> Fixed:
    return Fixed.total(torch.tensor(values, dtype=torch.float64))


def limbs(x: Fixed) -> tuple[int, int]:
    return int(x.whole), int(x.fraction)


@given(st.lists(REALS, max_size=30))
def test_a_total_is_the_exact_sum_of_rounded_terms(values):
    expected = sum(round(Fraction(value) * ONE) for value in values)
    total = fixed(*values)
    assert total.units() == [expected]
    assert 0 <= int(total.fraction) < ONE


@given(REALS, REALS, REALS)
def test_addition_of_fixed_numbers(a, b, c):
    x, y, z = fixed(a), fixed(b), fixed(c)
    assert limbs((x + y) + z) == limbs(x + (y + z)) == limbs(fixed(a, b, c))
    assert limbs(x + y) == limbs(y + x)
    assert limbs(x + fixed()) == limbs(x)
    assert limbs(x + fixed(-a)) == (0, 0)


def test_float32_needs_no_wider_type_on_the_way():
    x = torch.rand(10_000) * torch.logspace(-9, 6, 10_000)
    assert torch.equal(to_units(x), to_units(x.double()))


def test_cells_are_summed_apart():
    units, index = torch.tensor([ONE - 1, ONE - 1, 5, 3 * ONE]), torch.tensor([2, 2, 0, 2])
    assert Fixed.spread(units, index, 4).units() == [5, 0, 5 * ONE - 2, 0]


def some_histogram(seed: int) -> Histogram:
    generator = torch.Generator().manual_seed(seed)
    p = torch.rand(500, generator=generator)
    return Histogram.of(p, torch.rand(500, generator=generator) < p, torch.rand(500, generator=generator) < 0.9)


def some_sum(seed: int) -> Mean:
    values = torch.randn(500, generator=torch.Generator().manual_seed(seed)).abs()
    return Mean.of(values, values > 0.1)


@pytest.mark.parametrize("make", [some_histogram, some_sum])
def test_addition_of_stats(make):
    a, b, c = make(0), make(1), make(2)
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + a.zero() == a.zero() + a == a
    assert a + b != a


def test_addition_leaves_both_sides_as_they_were():
    a, b = some_histogram(0), some_histogram(1)
    _ = a + b
    assert a == some_histogram(0)
    assert b == some_histogram(1)


def test_what_processes_sum_field_by_field_is_what_plus_gives():
    workers = [some_histogram(seed) for seed in range(5)]
    summed = {name: sum(w.tensors()[name] for w in workers) for name in workers[0].tensors()}
    assert all(tensor.dtype == torch.int64 for tensor in summed.values())
    assert workers[0].filled(summed) == reduce(add, workers)


def test_stats_of_another_kind_or_shape_do_not_merge():
    with pytest.raises(TypeError):
        some_histogram(0) + some_sum(0)
    assert some_histogram(0) != some_sum(0)
    with pytest.raises(ValueError, match=r"\(15,\) and \(10,\) do not merge"):
        some_histogram(0).fold(15) + some_histogram(0).fold(10)


def test_stats_are_frozen():
    with pytest.raises(AttributeError):
        some_sum(0).count = torch.tensor(2)  # type: ignore[misc]


def test_unbounded_rows_are_counted_and_not_added():
    values = torch.tensor([1.0, float("inf"), LIMIT, 2.0, float("inf")])
    stats = Mean.of(values, torch.tensor([True, True, True, True, False]))
    assert (int(stats.count), stats.wild.tolist()) == (4, [2, 2])
    assert stats.sums.units() == [4 * ONE, 3 * ONE, 4 * ONE, 3 * ONE, 5 * ONE]


def test_nothing_saturates_at_1e11_pixels():
    pixels, confident = 10**11, to_units(torch.tensor(0.7)).item()
    one = Histogram.of(torch.tensor([0.7]), torch.tensor([True]), torch.tensor([True]))
    many = one
    for bit in bin(pixels)[3:]:  # doubling: the same sums as adding one pixel at a time
        many = many + many + one if bit == "1" else many + many
    assert int(many.count.sum()) == pixels
    assert sum(many.confidence.units()) == pixels * confident
    assert ECE().value(many) == 1 - confident / ONE


def test_the_heaviest_rows_fit_too():
    most = Fixed(torch.tensor(10**11) * int(LIMIT), torch.tensor(ONE - 1))
    assert (most + fixed(1.0)).units() == [10**11 * int(LIMIT) * ONE + ONE - 1 + ONE]


def test_fields_own_their_memory():
    histogram = some_histogram(0)
    for tensor in histogram.tensors().values():
        assert tensor.shape in ((CELLS,), ())
        assert tensor.untyped_storage().nbytes() == 8 * tensor.numel()
