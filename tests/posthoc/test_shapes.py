"""Every layout of logits and labels that users have, and what a missing extra says."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from confide.core.errors import InputError, MissingExtra
from confide.posthoc import IsotonicOVR, Platt, Temperature


def drawn(*shape):
    z = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    y = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < (z / 2).sigmoid()
    return z, y.long()


@pytest.mark.parametrize("kind", [Temperature, Platt, IsotonicOVR])
def test_masks_of_one_output(kind):
    z, y = drawn(3, 1, 12, 12)
    flat = kind().fit(z.reshape(-1), y.reshape(-1))
    for target in (y, y[:, 0], y.bool(), y.double()):
        found = kind().fit(z, target)
        assert found.task_ == "binary"
        assert torch.equal(found.predict_proba(z), flat.predict_proba(z.reshape(-1)).reshape(z.shape))


@pytest.mark.parametrize("kind", [Temperature, Platt, IsotonicOVR])
def test_masks_of_several_labels(kind):
    z, y = drawn(3, 4, 12, 12)
    dense = kind().fit(z, y)
    rows, labels = z.movedim(1, -1).reshape(-1, 4), y.movedim(1, -1).reshape(-1, 4)
    flat = kind().fit(rows, labels)
    assert dense.task_ == flat.task_ == "multilabel"
    assert torch.allclose(dense.transform(z).movedim(1, -1).reshape(-1, 4), flat.transform(rows), atol=1e-12)
    assert (len(dense.parts_), dense.n_) == (1 if kind is Temperature else 4, y.numel())


def test_one_row_without_a_batch():
    z = torch.randn(300, 5, generator=torch.Generator().manual_seed(0))
    found = Temperature().fit(z, torch.multinomial((z / 2).softmax(1), 1)[:, 0])
    assert torch.allclose(found.transform(z[0]), found.transform(z)[0])
    assert found.predict_proba(z.tolist()[0]).sum() == pytest.approx(1)


def test_lists_and_foreign_arrays():
    z, y = drawn(200)
    expected = Temperature().fit(z, y).temperature_
    assert Temperature().fit(z.tolist(), y.tolist()).temperature_ == expected
    assert Temperature().fit(z.numpy().astype(">f8")[::-1], y.numpy()[::-1]).temperature_ == pytest.approx(expected)
    with pytest.raises(InputError, match="logits must hold numbers, got"):
        Temperature().fit(np.array(["a", "b"]), y)
    with pytest.raises(InputError, match=r"logits must be floating point, got torch\.int64"):
        Temperature().fit(y, y)


def test_outputs_that_do_not_fit_are_named():
    z, y = drawn(50)
    with pytest.raises(InputError, match=r"target of shape \(40,\) does not fit one output a row of shape \(50,\)"):
        Temperature().fit(z, y[:40])
    with pytest.raises(InputError, match=r"fitted on one output a row, got logits of shape \(50, 2\)"):
        Temperature().fit(z, y).transform(torch.stack((z, z), 1))


@pytest.mark.parametrize(("package", "run"), [
    ("scipy", lambda found, z, y: IsotonicOVR().fit(z, y)),
    ("safetensors.torch", lambda found, z, y: found.save("t.safetensors")),
])  # fmt: skip
def test_a_missing_extra_is_named(package, run, monkeypatch):
    z, y = drawn(50)
    found = Temperature().fit(z, y)
    monkeypatch.setitem(sys.modules, package, None)
    name = package.split(".")[0]
    with pytest.raises(MissingExtra, match=rf"this needs {name}, .* pip install 'confide\[posthoc\]'"):
        run(found, z, y)


def test_the_room_needs_no_extra_to_open():
    code = "import sys, confide.posthoc; assert not {'scipy', 'sklearn', 'safetensors'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
