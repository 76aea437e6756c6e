"""What every calibrator must take, and what it must refuse."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch

from confide.core.errors import InputError
from confide.testing.calibrator_samples import CLASSES, MakeCalibrator, Noisy, sample, unwarned
from confide.testing.samples import expect_error


def ignored_is_removed(make: MakeCalibrator) -> None:
    """Ignored rows are as if they were not there, whatever they hold."""
    z, y = sample(make)
    target = y.clone()
    target.reshape(-1)[::5] = 255
    broken = z.movedim(1, -1).clone()
    broken[target == 255] = torch.nan
    broken = broken.movedim(-1, 1)
    with unwarned():
        found = make(ignore_index=255).fit(broken, target)
        if make().card.spatial:
            assert found.n_ == int((target != 255).sum())
            assert bool(found.transform(z).isfinite().all())
            return
        expected = make().fit(z[target != 255], y[target != 255])
    assert torch.equal(found.transform(z), expected.transform(z))


def dense_is_flattened(make: MakeCalibrator) -> None:
    """Images are rows, wherever the class axis is."""
    z, y = sample(make)
    if make().card.spatial:
        return
    with unwarned():
        flat = make().fit(z, y)
        image = z.reshape(2, 16, 16, CLASSES).movedim(-1, 1), y.reshape(2, 16, 16)
        dense = make().fit(*image)
        last = make(dim=-1).fit(image[0].movedim(1, -1), image[1])
    expected = flat.transform(z)
    assert torch.allclose(dense.transform(image[0]).movedim(1, -1).reshape(-1, CLASSES), expected, atol=1e-12)
    assert torch.allclose(last.transform(z.reshape(2, 256, CLASSES)).reshape(-1, CLASSES), expected, atol=1e-12)


def binary_and_multilabel(make: MakeCalibrator) -> None:
    """One output a row, with or without an axis of its own; several labels, of which some are unknown."""
    z, y = sample(make)
    if make().card.spatial:
        expect_error(InputError, "needs images: logits (N, C, H, W)", lambda: make().fit(z[:, 0], y))
        return
    s, t = z[:, 1] - z[:, 0], (y == 1).long()
    labels = torch.stack((t, 1 - t, (y == 2).long()), 1)
    with unwarned():
        one, column = make().fit(s, t), make().fit(s[:, None], t[:, None].bool())
        many = make().fit(torch.stack((s, -s, z[:, 2]), 1), labels)
        masked = make().fit(torch.stack((s, -s, z[:, 2]), 1), labels.where(labels != labels[0, 0], labels).float())
    assert torch.equal(one.predict_proba(s), column.predict_proba(s[:, None])[:, 0])
    assert torch.allclose(one.transform(s).sigmoid(), one.predict_proba(s), atol=1e-12)
    p = many.predict_proba(torch.stack((s, -s, z[:, 2]), 1))
    assert p.shape == (len(s), 3)
    assert bool(((p > 0) & (p < 1)).all())
    assert torch.equal(p, masked.predict_proba(torch.stack((s, -s, z[:, 2]), 1)))
    if not make().card.pooled:
        assert torch.allclose(p[:, 0], one.predict_proba(s), atol=1e-9)


def half_precision_is_near(make: MakeCalibrator) -> None:
    """float16 logits are fitted as the same numbers in float64."""
    z, y = sample(make)
    if make().card.spatial:
        return
    z = z.half().double()
    with unwarned():
        wide, half = make().fit(z, y), make().fit(z.half(), y)
    assert math.isclose(half.nll_after_, wide.nll_after_, rel_tol=0, abs_tol=1e-4)
    assert half.data_hash_ == wide.data_hash_


def loader_is_fit(make: MakeCalibrator) -> None:
    """A loader gives what its logits give, leaves the model alone and keeps within its memory."""
    z, y = sample(make)
    z = z.float()
    model = Noisy(CLASSES).train()
    model.drop.eval()
    before = copy.deepcopy(model.state_dict())
    size = 2 if make().card.spatial else 100
    with unwarned(), torch.no_grad():
        found = make().fit_loader(model, list(zip(z.split(size), y.split(size), strict=True)))
        expected = make().fit(copy.deepcopy(model).eval()(z), y)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert (model.training, model.norm.training, model.drop.training) == (True, True, False)
    assert torch.allclose(found.transform(z), expected.transform(z), atol=1e-5)
    with unwarned():
        few = make().fit_loader(model, zip(z.split(size), y.split(size), strict=True), memory=z.numel() * 2)
    assert few.n_ <= 0.6 * y.numel()


def refusals_name_the_fix(make: MakeCalibrator) -> None:
    """Bad input is refused in words that help."""
    z, y = sample(make)
    if not make().card.spatial:
        expect_error(InputError, "softmax, or say from_probs=True", lambda: make().fit(z.softmax(1), y))
        expect_error(InputError, "target.long()", lambda: make().fit(z, y.double()))
    expect_error(InputError, "255", lambda: make().fit(z, torch.where(y == 1, 255, y)))
    with unwarned():
        fitted = make().fit(z, y)
    expect_error(InputError, "fitted on 4 classes, got logits of shape", lambda: fitted.transform(z[:, :3]))


INPUT_CHECKS: tuple[Callable[[MakeCalibrator], None], ...] = (
    ignored_is_removed,
    dense_is_flattened,
    binary_and_multilabel,
    half_precision_is_near,
    loader_is_fit,
    refusals_name_the_fix,
)
