"""What every calibrator must do, whatever it is: settings, the fit, the map, and what becomes of it."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from confide.core.errors import InputError, KnobError, NotFitted
from confide.posthoc import load
from confide.testing.calibrator_samples import CLASSES, MakeCalibrator, Sample, nll, sample, shaped, unwarned
from confide.testing.samples import expect_error


def init_only_stores(make: MakeCalibrator) -> None:
    """The constructor stores, `fit` checks; before `fit` a readable error."""
    calibrator = make(ignore_index=-7)
    assert calibrator.get_params()["ignore_index"] == -7
    assert not [name for name in vars(calibrator) if name.endswith("_")]
    odd = object()
    assert make(dim=odd).dim is odd
    rows = torch.zeros(2, CLASSES)
    expect_error(NotFitted, "not fitted yet: call fit(logits, target) first", lambda: calibrator.transform(rows))
    expect_error(KnobError, "dim=", lambda: make(dim="no").fit(*sample(make)))


def clones(make: MakeCalibrator) -> None:
    """Settings make an equal twin; unknown ones are refused."""
    first = make(ignore_index=-7)
    second = type(first)(**first.get_params())
    assert first.get_params() == second.get_params()
    assert second.set_params(ignore_index=3) is second
    assert (first.ignore_index, second.ignore_index) == (-7, 3)
    known = ", ".join(first.get_params())
    expect_error(InputError, f"has no rhubarb; it takes {known}", lambda: second.set_params(rhubarb=1))


def fit_returns_self_and_keeps_its_input(make: MakeCalibrator) -> None:
    """`fit` returns self, wherever it is called, and nothing is written into what was passed."""
    z, y = sample(make)
    before = z.clone(), y.clone()
    calibrator = make()
    with unwarned():
        assert calibrator.fit(z, y) is calibrator
        with torch.inference_mode():  # as in a validation loop
            again = make().fit(z * 1, y * 1)
    assert torch.equal(again.transform(z), calibrator.transform(z))
    assert torch.equal(z, before[0])
    assert torch.equal(y, before[1])


def same_data_same_bits(make: MakeCalibrator) -> None:
    """No hidden randomness; the hash tells data apart."""
    z, y = sample(make)
    with unwarned():
        a, b = make().fit(z, y), make().fit(z, y)
    assert torch.equal(a.transform(z), b.transform(z))
    assert a.data_hash_ == b.data_hash_ != make_hash(make, z + 1e-3, y)


def make_hash(make: MakeCalibrator, z: torch.Tensor, y: torch.Tensor) -> str:
    """The hash of these data."""
    with unwarned():
        return make().fit(z, y).data_hash_


def arrays_in_arrays_out(make: MakeCalibrator) -> None:
    """Arrays and tensors give the same numbers, in their own kind and dtype."""
    z, y = sample(make)
    with unwarned():
        tensor, array = make().fit(z, y), make().fit(z.numpy(), y.numpy())
    assert tensor.data_hash_ == array.data_hash_
    for verb in ("transform", "predict_proba"):
        out, other = getattr(tensor, verb)(z), getattr(array, verb)(z.numpy())
        assert torch.equal(out, torch.from_numpy(other))
        assert out.dtype == z.dtype
        assert getattr(tensor, verb)(z.float()).dtype == torch.float32
        assert getattr(tensor, verb)(z.half()).dtype == torch.float32


def recovers_a_planted_map(make: MakeCalibrator) -> None:
    """Threefold logits: on new rows most of the excess NLL is gone."""
    fit, test = sample(make, 4096), sample(make, 4096, seed=1)
    with unwarned():
        calibrator = make().fit(*fit)
    truth, raw = nll(test.z / 3.0, test.y), nll(test.z, test.y)
    found = nll(calibrator.transform(test.z), test.y)
    assert found - truth < 0.35 * (raw - truth)


def never_worse(make: MakeCalibrator) -> None:
    """The NLL of the data of the fit never rises, and before and after are what they say."""
    for scale in (0.05, 1.0, 4.0, 40.0):
        z, y = sample(make, 256, scale)
        for labels in (y, y.flip(0)):  # flipped, they have nothing to do with the logits
            with unwarned():
                calibrator = make().fit(z, labels)
            assert math.isclose(calibrator.nll_before_, nll(z, labels), rel_tol=1e-6)
            after = nll(calibrator.transform(z), labels)
            assert math.isclose(calibrator.nll_after_, after, rel_tol=1e-6, abs_tol=1e-9)
            assert calibrator.nll_after_ <= calibrator.nll_before_


def argmax_is_kept(make: MakeCalibrator) -> None:
    """Where the card says so, no prediction changes."""
    if not make().card.keeps_argmax:
        return
    for scale in (0.1, 5.0):
        z, y = sample(make, 256, scale)
        with unwarned():
            calibrator = make().fit(z, y)
        other = sample(make, 256, scale, seed=2).z
        assert torch.equal(calibrator.transform(other).argmax(1), other.argmax(1))


def rows_sum_to_one(make: MakeCalibrator) -> None:
    """Probabilities are normalised and positive, near the data and far away."""
    z, y = sample(make)
    with unwarned():
        calibrator = make().fit(z, y)
    for scale in (0.0, 1.0, 100.0):
        p, log_p = calibrator.predict_proba(z * scale), calibrator.transform(z * scale)
        assert (p.sum(1) - 1).abs().max() < 1e-12
        assert bool(log_p.isfinite().all())
        assert torch.allclose(log_p.softmax(1), p, rtol=0, atol=1e-12)


def degenerate_data_give_a_bound(make: MakeCalibrator) -> None:
    """Separable data, absent classes, always wrong, all equal: finite numbers."""
    eye = torch.eye(CLASSES, dtype=torch.float64)
    z, y = sample(make, 128)
    flat = Sample(eye.repeat(32, 1) * 8, torch.arange(CLASSES).repeat(32))
    missing = Sample(eye.repeat(32, 1) * 2, torch.arange(CLASSES).repeat(32) % 2)
    wrong = Sample(flat.z, (flat.y + 1) % CLASSES)
    for batch in (flat, missing, wrong, Sample(torch.zeros_like(flat.z), flat.y)):
        odd = shaped(make, batch)
        with unwarned():
            calibrator = make().fit(*odd)
        for logits in (odd.z, z):
            assert bool(calibrator.transform(logits).isfinite().all())
        if "never_worse" not in make().card.exempt:
            assert calibrator.nll_after_ <= calibrator.nll_before_
    assert y.dtype == torch.int64


def two_rows_are_enough(make: MakeCalibrator) -> None:
    """Two rows fit, one is refused."""
    z, y = sample(make, 64)
    few = torch.full_like(y, -100)
    few.reshape(-1)[:2] = y.reshape(-1)[:2]
    with unwarned():
        calibrator = make().fit(z, few)
    assert calibrator.n_ == 2
    assert bool(calibrator.transform(z).isfinite().all())
    few.reshape(-1)[0] = -100
    expect_error(InputError, "1 labelled rows: a calibrator needs two or more", lambda: make().fit(z, few))


def saving_keeps_all(make: MakeCalibrator) -> None:
    """What comes back from a file is the same, to the bit."""
    z, y = sample(make)
    with unwarned():
        calibrator = make().fit(z, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calibrator.safetensors"
        calibrator.save(path)
        again = load(path)
    assert type(again) is type(calibrator)
    assert again.get_params() == calibrator.get_params()
    assert torch.equal(again.transform(z), calibrator.transform(z))
    for name, value in vars(calibrator).items():
        other = getattr(again, name)
        if name != "parts_":
            assert torch.equal(other, value) if isinstance(value, torch.Tensor) else other == value, name


def module_is_transform(make: MakeCalibrator) -> None:
    """The module for deployment computes the same."""
    z, y = sample(make)
    with unwarned():
        calibrator = make().fit(z, y)
    module = calibrator.to_module()
    assert torch.allclose(module.double()(z), calibrator.transform(z), atol=1e-4)
    assert {name for name, _ in module.named_buffers()} == set(module.state_dict())


def folds_if_affine(make: MakeCalibrator) -> None:
    """An affine map goes into the layer before it; others say what to do instead."""
    z, y = sample(make)
    layer = nn.Linear(3, CLASSES).double()
    with unwarned():
        calibrator = make().fit(z, y)
    if not calibrator.card.affine:
        expect_error(InputError, "is not an affine map", lambda: calibrator.fold_into(layer))
        return
    x = torch.randn(64, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    expected = calibrator.transform(layer(x).detach())
    out = calibrator.fold_into(layer)(x)
    assert torch.equal(out.argmax(1), expected.argmax(1))
    assert torch.allclose(out.softmax(1), expected.softmax(1), atol=1e-6)


MAP_CHECKS: tuple[Callable[[MakeCalibrator], None], ...] = (
    init_only_stores,
    clones,
    fit_returns_self_and_keeps_its_input,
    same_data_same_bits,
    arrays_in_arrays_out,
    recovers_a_planted_map,
    never_worse,
    argmax_is_kept,
    rows_sum_to_one,
    degenerate_data_give_a_bound,
    two_rows_are_enough,
    saving_keeps_all,
    module_is_transform,
    folds_if_affine,
)
