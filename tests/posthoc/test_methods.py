"""What the single methods promise beyond the suite."""

import numpy as np
import pytest
import torch
from torch import nn

from confide.core.errors import CalibrationWarning, InputError, KnobError
from confide.posthoc import (
    BBQ,
    Dirichlet,
    HistogramBinning,
    IsotonicOVR,
    LocalTemperature,
    MatrixScaling,
    MetaCal,
    PriorShift,
    Temperature,
    VectorScaling,
)
from confide.testing.calibrator_samples import unwarned


def drawn(n, classes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, classes, generator=generator, dtype=torch.float64) * 2
    return z, torch.multinomial(z.softmax(1), 1, generator=generator)[:, 0]


def ece(p, hit, bins=15):
    """Gap between confidence and share of hits, bin by bin."""
    where = (p * bins).ceil().clamp(1, bins)
    gap = torch.zeros(bins + 1, dtype=torch.float64).scatter_add(0, where.long(), p - hit.double())
    return float(gap.abs().sum()) / len(p)


def test_prior_shift_undoes_class_weights():
    z, y = drawn(200_000, 3)
    weight = torch.tensor([1.0, 5.0, 20.0], dtype=torch.float64)
    trained = z + weight.log()  # what a network says that was trained with these weights
    frequency = torch.bincount(y) / len(y)
    given = PriorShift(train_prior=(weight * frequency).tolist()).fit(trained, y)
    learnt = PriorShift().fit(trained, y)
    for found in (given, learnt):
        p, guess = found.predict_proba(trained).max(1)
        assert ece(p, guess == y) < 0.01
        assert torch.allclose(found.bias_ - found.bias_[0], -weight.log(), atol=0.1)
    assert ece(*(lambda p: (p[0], p[1] == y))(trained.softmax(1).max(1))) > 0.05


def test_prior_shift_to_another_target_need_not_fit_the_labels():
    z, y = drawn(500, 3)
    with pytest.warns(CalibrationWarning, match="as asked for, it is kept"):
        found = PriorShift(train_prior=[1, 1, 1], target_prior=[1, 2, 7]).fit(z, y)
    assert torch.allclose(found.bias_, (torch.tensor([0.1, 0.2, 0.7]).double() * 3).log())
    with pytest.raises(KnobError, match="train_prior must be 3 positive numbers, one a class"):
        PriorShift(train_prior=[1, 2]).fit(z, y)


def test_binary_prior_shift_takes_one_number():
    s, y = drawn(1000, 2)[0][:, 0], torch.arange(1000) % 2
    found = PriorShift(train_prior=0.5, target_prior=0.2)
    with pytest.warns(CalibrationWarning):
        found.fit(s, y)
    assert torch.allclose(found.transform(s) - s, torch.tensor(0.25).double().log(), atol=1e-12)


def test_histogram_binning_gives_the_share_of_hits():
    p = np.r_[np.full(40, 0.15), np.full(60, 0.85)]
    y = np.r_[np.arange(40) % 4 == 0, np.arange(60) % 3 > 0].astype(int)
    found = HistogramBinning(bins=10).fit(np.log(p) - np.log1p(-p), y)
    at = found.predict_proba(np.log([0.12, 0.88]) - np.log1p(-np.array([0.12, 0.88])))
    assert np.allclose(at, [0.25, 2 / 3])


def test_quantile_bins_hold_equal_numbers():
    z, y = drawn(1500, 3)
    with unwarned():
        found = HistogramBinning(bins=5, strategy="quantile").fit(z, y)
    counts = torch.bincount(torch.searchsorted(found.edges_[0], z.softmax(1)[:, 0].contiguous()))
    assert counts.tolist() == pytest.approx([300] * 5, abs=1)


@pytest.mark.parametrize("kind", [IsotonicOVR, HistogramBinning, BBQ])
def test_no_label_is_impossible(kind):
    z, y = drawn(600, 5)
    z = z * 2
    found = kind().fit(z, y)
    new, labels = drawn(5000, 5, seed=1)
    p = found.predict_proba(new * 2)
    assert float(p.min()) > 1e-6
    assert bool(p.gather(1, labels[:, None]).log().isfinite().all())


def test_a_missing_class_keeps_a_chance_and_is_named():
    z, y = drawn(600, 5)
    with pytest.warns(CalibrationWarning, match="no row of class 4"):
        found = IsotonicOVR().fit(z[y < 4], y[y < 4])
    assert 0 < float(found.predict_proba(z)[:, 4].max()) < 0.1


def test_bbq_weighs_histograms_by_their_likelihood():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < np.where(p > 0.5, 0.9, 0.2)).astype(int)  # two bins say it all
    found = BBQ().fit(np.log(p) - np.log1p(-p), y)
    at = np.array([0.1, 0.3, 0.7, 0.9])
    assert np.allclose(found.predict_proba(np.log(at) - np.log1p(-at)), [0.2, 0.2, 0.9, 0.9], atol=0.05)


def test_meta_cal_gives_up_so_many():
    z, y = drawn(6000, 5)
    found = MetaCal(miscoverage=0.2)
    with pytest.warns(CalibrationWarning, match="would raise the NLL"):
        found.fit(z, y)
    p = found.predict_proba(z)
    given_up = (p - 0.2).abs().amax(1) < 1e-12
    right = z.argmax(1) == y
    assert float(given_up[right].double().mean()) == pytest.approx(0.2, abs=0.06)
    assert float(given_up[~right].double().mean()) > 0.3


def test_dirichlet_sees_probabilities_only():
    z, y = drawn(800, 4)
    a, b = Dirichlet().fit(z, y), Dirichlet().fit(z.log_softmax(1), y)
    assert torch.allclose(a.predict_proba(z), b.predict_proba(z), atol=1e-7)


def test_odir_draws_to_the_diagonal():
    z, y = drawn(800, 4)
    free = Dirichlet(off_diagonal=0.0, intercept=0.0).fit(z, y)
    firm = Dirichlet(off_diagonal=1e3, intercept=1e3).fit(z, y)
    off = ~torch.eye(4, dtype=torch.bool)
    assert float(firm.weight_[off].abs().max()) < 1e-4 < float(free.weight_[off].abs().max())
    assert float(firm.bias_.abs().max()) < 1e-4


def test_a_map_of_thousands_of_parameters_generalises():
    z, y = drawn(3000, 40)
    z[:, :5] += 1.0  # what a bias can mend
    new, labels = drawn(3000, 40, seed=1)
    new[:, :5] += 1.0
    raw = float(torch.nn.functional.cross_entropy(new, labels))
    for kind in (VectorScaling, MatrixScaling, Dirichlet):
        found = kind().fit(z, y)
        assert float(torch.nn.functional.cross_entropy(found.transform(new), labels)) < raw - 0.03
    assert float(torch.nn.functional.cross_entropy(MatrixScaling(strength=0.0).fit(z, y).transform(new), labels)) > raw


def test_local_temperature_follows_the_place():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(6, 3, 16, 16, generator=generator)
    z[:, :, :, 8:] *= 3.0
    true = z.clone()
    true[:, :, :, 8:] /= 3.0  # the right half is three times too sure
    p = true.softmax(1).movedim(1, -1).reshape(-1, 3)
    y = torch.multinomial(p, 1, generator=generator).reshape(6, 16, 16)
    one, local = (Temperature().fit(z, y), LocalTemperature().fit(z, y))
    assert local.nll_after_ < one.nll_after_ - 0.005
    with pytest.raises(InputError, match="needs images"):
        LocalTemperature().fit(z.movedim(1, -1).reshape(-1, 3), y.reshape(-1))


def test_a_loader_of_other_things_says_how():
    z, y = drawn(64, 3)
    batches = [{"x": z.float(), "label": y}]
    with pytest.raises(InputError, match=r"a batch is a dict, not a pair.*forward=lambda model, batch"):
        Temperature().fit_loader(nn.Identity(), batches)
    found = Temperature().fit_loader(nn.Identity(), batches, forward=lambda m, b: (m(b["x"]), b["label"]))
    assert found.temperature_ == pytest.approx(Temperature().fit(z.float(), y).temperature_)
    with pytest.raises(InputError, match="the loader gave no batch"):
        Temperature().fit_loader(nn.Identity(), [])


def test_small_unsigned_labels_do_not_wrap():
    z, y = drawn(300, 3)
    target = y.to(torch.uint8)
    target[::3] = 255
    expected = Temperature().fit(z[target != 255], y[target != 255])
    assert Temperature(ignore_index=255).fit(z, target).temperature_ == expected.temperature_
    assert Temperature().fit(z, y.int()).n_ == 300


def test_odir_has_no_slope_left():
    z, y = drawn(800, 4)
    strong, weak = 0.02, 0.05
    found = Dirichlet(off_diagonal=strong, intercept=weak).fit(z, y)
    log_p, off = z.log_softmax(1), ~torch.eye(4, dtype=torch.bool)
    miss = found.predict_proba(z) - torch.nn.functional.one_hot(y, 4)
    slope = miss.T @ log_p / 800 + 2 * strong * found.weight_ * off
    assert float(slope[off].abs().max()) < 1e-6
    assert float(slope.diagonal().abs().max()) < 1e-4
    assert float((miss.mean(0) + 2 * weak * found.bias_).abs().max()) < 1e-6
