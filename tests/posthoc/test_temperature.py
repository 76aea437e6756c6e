"""Temperature: the optimum, whatever the data; a bound where there is none."""

import math

import numpy as np
import pytest
import torch

from confide.core.errors import CalibrationWarning, InputError, KnobError
from confide.posthoc import EnsembleTemperature, Temperature, VectorScaling


def drawn(n, classes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, classes, generator=generator, dtype=torch.float64) * 2
    return z, torch.multinomial((z * 0.8).softmax(1), 1, generator=generator)[:, 0]


def slope(z, y, scale):
    """The derivative of the NLL in 1/T, from its definition."""
    low = z - z.amax(1, keepdim=True)
    return float(((low * scale).softmax(1) * low).sum(1).mean() - low.gather(1, y[:, None]).mean())


def bisected(z, y):
    """The T of the lowest NLL by bisection in float64: convex in 1/T, so one sign change is all there is."""
    z, low, high = z.double(), math.log(1e-6), math.log(1e6)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(z, y, math.exp(middle)) > 0 else (middle, high)
    return math.exp(-low)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [0.02, 1.0, 50.0])
@pytest.mark.parametrize(("n", "classes"), [(20, 2), (20, 1000), (1000, 100), (9000, 10)])
def test_the_optimum_is_found(n, classes, scale, dtype):
    z, y = drawn(n, classes)
    z = (z * scale).to(dtype)
    found = Temperature().fit(z, y)
    assert found.temperature_ == pytest.approx(bisected(z, y), rel=1e-9)
    assert found.converged_
    assert found.nll_after_ <= found.nll_before_


def test_a_million_rows():
    z, y = drawn(1_000_000, 2)
    found = Temperature().fit(z.float() * 10, y)
    assert found.temperature_ == pytest.approx(12.5, rel=0.01)
    assert abs(slope(z.float().double() * 10, y, 1 / found.temperature_)) < 1e-9


def test_separable_labels_give_a_modest_bound_and_a_warning():
    z = 2 * torch.eye(4).repeat(10, 1)
    with pytest.warns(CalibrationWarning, match="every one of the 40 labels is predicted.*T is held at"):
        found = Temperature().fit(z, z.argmax(1))
    assert not found.converged_
    assert found.nll_after_ == pytest.approx(math.log1p(1 / 41), rel=1e-6)  # as if one of 42 rows were wrong
    with pytest.warns(CalibrationWarning, match="every one"):
        assert Temperature().fit(z * 1000, z.argmax(1)).temperature_ == 1  # bolder already: no worse, and no bolder


def test_logits_worse_than_chance_give_a_bound_and_a_warning():
    z = 2 * torch.eye(4).repeat(10, 1)
    with pytest.warns(CalibrationWarning, match="no better than chance; T is held at its bound"):
        found = Temperature().fit(z, (z.argmax(1) + 1) % 4)
    assert found.nll_after_ == pytest.approx(math.log(4), abs=1e-2)
    with pytest.warns(CalibrationWarning, match="all logits of a row are equal"):
        assert Temperature().fit(torch.ones(5, 3), torch.arange(5) % 3).temperature_ == 1


def test_published_grids():
    z, y = drawn(400, 10)
    found = Temperature(objective="ece", search="focal_calibration").fit(z, y).temperature_
    assert round(found, 6) in {round(k / 10, 6) for k in range(1, 101)}
    assert Temperature(objective="ece", search="label_relaxation").fit(z * 2, y).temperature_ in (1.5, 2.0, 2.5, 3.0)
    exact = Temperature().fit(z * 2, y).temperature_
    assert Temperature(search="focal_calibration").fit(z * 2, y).temperature_ == pytest.approx(exact, abs=0.1)


def test_brier_is_minimal():
    z, y = drawn(500, 5)
    target = torch.nn.functional.one_hot(y, 5)

    def brier(t):
        return float(((z / t).softmax(1) - target).square().sum(1).mean())

    found = Temperature(objective="brier").fit(z, y).temperature_
    assert brier(found) <= min(brier(found * 1.001), brier(found / 1.001))


def test_an_objective_that_costs_likelihood_is_kept_and_says_so():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    z[np.arange(60), y] += 1.0
    best = Temperature().fit(z, y).temperature_
    with pytest.warns(CalibrationWarning, match=r"would raise the NLL.*as asked for, it is kept"):
        found = Temperature(objective="ece", search="label_relaxation").fit(z / best, y)
    assert found.nll_after_ > found.nll_before_


def test_one_sigmoid_output_has_one_temperature():
    z, y = drawn(2000, 2)
    pair, single = Temperature().fit(z, y), Temperature().fit(z[:, 1] - z[:, 0], y)
    assert single.temperature_ == pytest.approx(pair.temperature_, rel=1e-12)
    assert torch.allclose(single.predict_proba(z[:, 1] - z[:, 0]), pair.predict_proba(z)[:, 1])


def test_probabilities_come_through_their_own_door():
    z, y = drawn(500, 4)
    found = Temperature(from_probs=True).fit(z.softmax(1), y)
    assert found.temperature_ == pytest.approx(Temperature().fit(z, y).temperature_, rel=1e-9)
    with pytest.raises(InputError, match="some numbers lie outside"):
        Temperature(from_probs=True).fit(z, y)
    zero = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.7, 0.3], [0.2, 0.8]])
    assert math.isfinite(Temperature(from_probs=True).fit(zero, torch.tensor([0, 0, 0, 1])).nll_after_)


def test_settings_and_labels_are_refused_in_words():
    z, y = drawn(50, 4)
    with pytest.raises(KnobError, match=r"objective='accuracy' is not possible.*'nll' \| 'brier' \| 'ece'"):
        Temperature(objective="accuracy").fit(z, y)
    with pytest.raises(InputError, match="labels of 0 and 1"):
        Temperature().fit(z[:, 0], y)
    with pytest.raises(InputError, match=r"looks one-hot: .*target.argmax\(1\)"):
        Temperature().fit(z, torch.nn.functional.one_hot(y, 4).double())
    with pytest.raises(InputError, match=r"NaN|inf|finite"):
        Temperature().fit(torch.where(z > 2, torch.nan, z), y)


def test_ensemble_weights_are_optimal_on_the_simplex():
    z, y = drawn(3000, 5)
    z = torch.where(torch.rand(3000, 1, generator=torch.Generator().manual_seed(1)) < 0.2, -2 * z, 2 * z)
    found = EnsembleTemperature().fit(z, y)
    w, t = found.weights_, found.temperature_
    parts = torch.stack(((z / t).softmax(1), z.softmax(1), torch.full_like(z, 0.2)))
    likely = parts.gather(2, y.expand(3, -1)[..., None])[..., 0]
    pull = (likely / (w @ likely)).mean(1)  # at the optimum 1 where w > 0, at most 1 elsewhere
    assert float(w.sum()) == pytest.approx(1)
    assert bool((pull <= 1 + 1e-6).all())
    assert torch.allclose(pull[w > 1e-6], torch.ones(1, dtype=w.dtype), atol=1e-6)


def test_the_standard_error_is_the_spread_over_samples():
    fits = [Temperature().fit(*drawn(400, 4, seed)) for seed in range(60)]
    spread = np.std([found.temperature_ for found in fits])
    assert np.mean([found.error_ for found in fits]) == pytest.approx(spread, rel=0.25)


def test_a_refused_fit_changes_nothing_and_a_new_one_forgets():
    z, y = drawn(300, 4)
    found = Temperature().fit(z, y)
    before = vars(found).copy()
    with pytest.raises(InputError, match="1 labelled rows"):
        found.fit(z[:1], y[:1])
    assert vars(found) == before
    labels = torch.nn.functional.one_hot(y, 4)
    with pytest.warns(CalibrationWarning, match="every one"):
        found.fit(2 * labels.double() - 1 + 0 * z, labels)
    assert not hasattr(found, "error_")
    labels[:, 2] = -100
    with pytest.raises(InputError, match="0 labelled rows: a calibrator needs two or more a label"):
        VectorScaling().fit(z, labels)
