"""Weights in the vision transformers' own layout, and their arithmetic done by hand from the file."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from confide.models import transunet
from confide.models.transunet import TransUNet
from confide.models.transunet_weights import load_pretrained

UNITS = (3, 4, 9)


def draw(random, *shape):
    return (0.05 * random.standard_normal(shape)).astype(np.float32)


def arrays(random):
    """Names and shapes as in R50+ViT-B_16.npz, with one transformer block."""
    found = {"conv_root/kernel": draw(random, 7, 7, 3, 64)}
    norms = {"gn_root": (64,), "Transformer/encoder_norm": (768,)}
    channels = 64
    for block, count in enumerate(UNITS, 1):
        width = 64 * 2 ** (block - 1)
        for unit in range(1, count + 1):
            name = f"block{block}/unit{unit}"
            shapes = ((1, 1, channels, width), (3, 3, width, width), (1, 1, width, 4 * width))
            for i, shape in enumerate(shapes, 1):
                found[f"{name}/conv{i}/kernel"] = draw(random, *shape)
                norms[f"{name}/gn{i}"] = (1, 1, 1, shape[-1])
            if unit == 1:
                found[f"{name}/conv_proj/kernel"] = draw(random, 1, 1, channels, 4 * width)
                norms[f"{name}/gn_proj"] = (1, 1, 1, 4 * width)
            channels = 4 * width
    found |= {"embedding/kernel": draw(random, 1, 1, 1024, 768), "embedding/bias": draw(random, 768)}
    found["Transformer/posembed_input/pos_embedding"] = draw(random, 1, 197, 768)
    name = "Transformer/encoderblock_0"
    for kind in ("query", "key", "value"):
        found[f"{name}/MultiHeadDotProductAttention_1/{kind}/kernel"] = draw(random, 768, 12, 64)
        found[f"{name}/MultiHeadDotProductAttention_1/{kind}/bias"] = draw(random, 12, 64)
    found[f"{name}/MultiHeadDotProductAttention_1/out/kernel"] = draw(random, 12, 64, 768)
    found[f"{name}/MultiHeadDotProductAttention_1/out/bias"] = draw(random, 768)
    for i, (a, b) in enumerate(((768, 3072), (3072, 768))):
        found[f"{name}/MlpBlock_3/Dense_{i}/kernel"] = draw(random, a, b)
        found[f"{name}/MlpBlock_3/Dense_{i}/bias"] = draw(random, b)
    norms |= {f"{name}/LayerNorm_0": (768,), f"{name}/LayerNorm_2": (768,)}
    for key, shape in norms.items():
        found |= {f"{key}/scale": 1 + draw(random, *shape), f"{key}/bias": draw(random, *shape)}
    return found


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setattr(transunet, "LAYERS", 1)
    path = tmp_path_factory.mktemp("weights") / "R50.npz"
    found = arrays(np.random.default_rng(0))
    np.savez(path, **found)
    model = load_pretrained(TransUNet(size=224), path).eval()
    yield model, {name: torch.from_numpy(values) for name, values in found.items()}, path
    patch.undo()


def test_a_block_is_attention_head_by_head(loaded):
    model, file, _ = loaded
    x = torch.randn(2, 5, 768)
    name = "Transformer/encoderblock_0"

    def norm(values, key):
        return F.layer_norm(values, (768,), file[f"{name}/{key}/scale"], file[f"{name}/{key}/bias"], 1e-6)

    def project(kind):
        prefix = f"{name}/MultiHeadDotProductAttention_1/{kind}"
        return (
            torch.einsum("nld,dhk->nhlk", norm(x, "LayerNorm_0"), file[f"{prefix}/kernel"])
            + (file[f"{prefix}/bias"][None, :, None])
        )

    q, k, v = (project(kind) for kind in ("query", "key", "value"))
    seen = ((q @ k.transpose(-1, -2)) / 8).softmax(-1) @ v
    out = f"{name}/MultiHeadDotProductAttention_1/out"
    y = x + torch.einsum("nhlk,hkd->nld", seen, file[f"{out}/kernel"]) + file[f"{out}/bias"]
    first, second = (f"{name}/MlpBlock_3/Dense_{i}" for i in (0, 1))
    hidden = F.gelu(norm(y, "LayerNorm_2") @ file[f"{first}/kernel"] + file[f"{first}/bias"])
    expected = y + hidden @ file[f"{second}/kernel"] + file[f"{second}/bias"]
    torch.testing.assert_close(model.blocks[0](x), expected, rtol=1e-4, atol=1e-4)


def test_the_first_unit_is_the_one_in_the_file(loaded):
    model, file, _ = loaded
    x = torch.randn(1, 64, 6, 6)

    def standardised(values, key, groups, eps):
        kernel = file[f"block1/unit1/{key[0]}/kernel"].permute(3, 2, 0, 1)
        flat = kernel.flatten(1)
        kernel = (
            (flat - flat.mean(1, keepdim=True)) / (flat.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        ).view_as(kernel)
        y = F.conv2d(values, kernel, padding=kernel.shape[-1] // 2)
        scale, bias = (file[f"block1/unit1/{key[1]}/{part}"].flatten() for part in ("scale", "bias"))
        return F.group_norm(y, groups or y.shape[1], scale, bias, eps)

    y = F.relu(standardised(x, ("conv1", "gn1"), 32, 1e-6))
    y = F.relu(standardised(y, ("conv2", "gn2"), 32, 1e-6))
    y = standardised(y, ("conv3", "gn3"), 32, 1e-6) + standardised(x, ("conv_proj", "gn_proj"), None, 1e-5)
    torch.testing.assert_close(model.encoder.stages[0][0](x), F.relu(y), rtol=1e-4, atol=1e-4)


def test_places_keep_their_order_and_are_resized(loaded):
    model, file, path = loaded
    table = file["Transformer/posembed_input/pos_embedding"]
    assert torch.equal(model.position, table[:, 1:])
    smaller = load_pretrained(TransUNet(size=192), path)
    corners, old = smaller.position.view(12, 12, 768), table[0, 1:].view(14, 14, 768)
    for i in (0, -1):
        for j in (0, -1):
            torch.testing.assert_close(corners[i, j], old[i, j])


def test_other_weights_are_refused(loaded, tmp_path):
    model, file, _ = loaded
    np.savez(tmp_path / "x.npz", **{"conv_root/kernel": np.zeros((7, 7, 3, 32), np.float32)})
    with pytest.raises(ValueError, match="has no 'gn_root/scale': the weights of R50-ViT-B_16 are needed"):
        load_pretrained(model, tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", **{k: v.numpy() for k, v in file.items()} | {"gn_root/scale": np.ones(32, np.float32)})
    with pytest.raises(ValueError, match=r"has \(32,\) where \(64,\) belongs"):
        load_pretrained(model, tmp_path / "y.npz")
