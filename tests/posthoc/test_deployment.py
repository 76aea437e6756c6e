"""Files, modules, ONNX and layers that calibrate themselves."""

import json
import pickle

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from confide.core.errors import InputError
from confide.posthoc import ALL, Beta, MatrixScaling, Platt, Temperature, VectorScaling, load
from confide.testing.calibrator_samples import sample, unwarned


def test_a_file_says_what_it_is(tmp_path):
    z, y = sample(Temperature)
    Temperature().fit(z, y).save(tmp_path / "t.safetensors")
    with safe_open(tmp_path / "t.safetensors", framework="pt") as file:
        facts = json.loads(file.metadata()["confide"])
    assert (facts["method"], facts["n"], facts["classes"], facts["task"]) == ("Temperature", 512, 4, "multiclass")
    assert facts["nll_after"] < facts["nll_before"]
    assert len(facts["data_hash"]) == 64
    assert facts["date"].endswith("+00:00")
    assert set(facts["versions"]) == {"confide", "torch", "numpy", "python"}
    assert facts["settings"]["objective"] == "nll"


def test_nothing_is_unpickled(tmp_path):
    path = tmp_path / "evil.safetensors"
    path.write_bytes(pickle.dumps({"weight": 1}))
    with pytest.raises(InputError, match=r"is not a calibrator: write one with calibrator\.save\(path\)"):
        load(path)
    with pytest.raises(InputError, match="there is no file"):
        load(tmp_path / "nothing")
    save_file({"a": torch.zeros(1)}, str(path), metadata={"confide": json.dumps({"format": 99})})
    with pytest.raises(InputError, match="has format 99; this version of confide reads 1"):
        load(path)
    save_file({"0.a": torch.zeros(1)}, str(path), metadata={"confide": json.dumps({"format": 1, "method": "Future"})})
    with pytest.raises(InputError, match="holds a Future, which this version of confide does not know"):
        load(path)


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind.card.onnx], ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore")
def test_onnx(kind, tmp_path):
    z, y = sample(kind)
    with unwarned():
        found = kind().fit(z, y)
    z = z.float()
    program = torch.onnx.export(found.to_module().eval(), (z,), dynamo=True, verbose=False)
    program.save(tmp_path / "calibrator.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "calibrator.onnx")
    (out,) = session.run(None, {session.get_inputs()[0].name: z.numpy()})
    expected = found.transform(z.double()).softmax(1)
    assert torch.allclose(torch.from_numpy(out).double().softmax(1), expected, atol=1e-5)


@pytest.mark.parametrize("kind", [Temperature, VectorScaling, MatrixScaling])
def test_folding_into_a_convolution(kind):
    z, y = sample(kind)
    found = kind().fit(z, y)
    layer = nn.Conv2d(3, 4, 1, bias=False)
    x = torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    expected = found.predict_proba(layer(x).detach())
    out = found.fold_into(layer)(x).softmax(1)
    assert torch.allclose(out, expected, atol=1e-6)
    assert layer.bias is None  # the given layer stays as it was
    with pytest.raises(InputError, match="the layer has 5 outputs, the calibrator was fitted on 4"):
        found.fold_into(nn.Linear(3, 5))
    with pytest.raises(InputError, match="can fold into Linear and Conv layers, got ReLU"):
        found.fold_into(nn.ReLU())


def test_folding_one_output_and_several_labels():
    z, y = sample(Temperature)
    s, t = z[:, :1], (y == 0).long()[:, None]
    layer, x = nn.Linear(3, 1), torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    one = Temperature().fit(s, t)
    assert torch.allclose(one.fold_into(layer)(x), one.transform(layer(x).detach()).float(), atol=1e-6)
    labels = torch.nn.functional.one_hot(y, 4)[:, :3]
    many = VectorScaling().fit(z[:, :3], labels)
    layer = nn.Linear(3, 3)
    assert torch.allclose(many.fold_into(layer)(x), many.transform(layer(x).detach()).float(), atol=1e-5)


@pytest.mark.parametrize("kind", [Temperature, Platt, Beta])
def test_modules_of_one_output_and_several_labels(kind):
    z, y = sample(kind)
    s, t = z[:, 0], (y == 0).long()
    one = kind().fit(s, t)
    assert torch.allclose(one.to_module()(s), one.transform(s), atol=1e-9)
    pair, labels = z[:, :2], torch.stack((t, 1 - t), 1)
    many = kind().fit(pair, labels)
    assert torch.allclose(many.to_module()(pair), many.transform(pair), atol=1e-9)
    assert many.transform(pair.numpy()).dtype == np.float64
