"""Start a TransUNet from ImageNet-21k weights of R50-ViT-B_16, in the .npz in which Google published them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from confide.core.errors import InputError
from confide.models.transunet import HIDDEN, TransUNet

Pairs = Iterator[tuple[Tensor, Tensor]]  # a parameter, and what it becomes
QKV = ("query", "key", "value")


class _File:
    """The arrays of the file as tensors, in torch's order of axes."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as archive:
            self._arrays = {name: torch.from_numpy(archive[name]) for name in archive.files}
        self._path = path

    def __call__(self, name: str) -> Tensor:
        if name not in self._arrays:
            raise InputError(f"{str(self._path)!r} has no {name!r}: the weights of R50-ViT-B_16 are needed")
        return self._arrays[name]

    def conv(self, name: str) -> Tensor:
        return self(f"{name}/kernel").permute(3, 2, 0, 1)

    def norm(self, name: str) -> tuple[Tensor, Tensor]:
        return self(f"{name}/scale").reshape(-1), self(f"{name}/bias").reshape(-1)


def load_pretrained(model: TransUNet, path: Path) -> TransUNet:
    """Copy encoder and transformer; the way up keeps its own first weights. Places are resized to the model's grid."""
    file = _File(path)
    with torch.no_grad():
        for parameter, value in _pairs(model, file):
            if parameter.shape != value.shape:
                raise InputError(f"{str(path)!r} has {tuple(value.shape)} where {tuple(parameter.shape)} belongs")
            parameter.copy_(value)
    return model


def _pairs(model: Any, file: _File) -> Pairs:
    conv, norm = model.encoder.root[0], model.encoder.root[1]
    yield from _conv_and_norm((conv, norm), file.conv("conv_root"), file.norm("gn_root"))
    for number, stage in enumerate(model.encoder.stages, 1):
        for place, unit in enumerate(stage, 1):
            yield from _unit(unit, file, f"block{number}/unit{place}")
    yield model.embedding.weight, file.conv("embedding")
    yield model.embedding.bias, file("embedding/bias")
    yield model.position, _places(file("Transformer/posembed_input/pos_embedding"), model.size // 16)
    *blocks, last = model.blocks
    for number, block in enumerate(blocks):
        yield from _block(block, file, f"Transformer/encoderblock_{number}")
    yield from zip((last.weight, last.bias), file.norm("Transformer/encoder_norm"), strict=True)


def _conv_and_norm(modules: tuple[Any, Any], kernel: Tensor, norm: tuple[Tensor, Tensor]) -> Pairs:
    conv, group = modules
    yield conv.weight, kernel
    yield group.weight, norm[0]
    yield group.bias, norm[1]


def _unit(unit: Any, file: _File, name: str) -> Pairs:
    for number, place in enumerate((0, 3, 6), 1):
        modules = unit.branch[place], unit.branch[place + 1]
        yield from _conv_and_norm(modules, file.conv(f"{name}/conv{number}"), file.norm(f"{name}/gn{number}"))
    if isinstance(unit.shortcut, nn.Sequential):
        modules = unit.shortcut[0], unit.shortcut[1]
        yield from _conv_and_norm(modules, file.conv(f"{name}/conv_proj"), file.norm(f"{name}/gn_proj"))


def _block(block: Any, file: _File, name: str) -> Pairs:
    attention, mlp = f"{name}/MultiHeadDotProductAttention_1", f"{name}/MlpBlock_3"
    kernels = [file(f"{attention}/{kind}/kernel").reshape(HIDDEN, HIDDEN).T for kind in QKV]
    yield block.qkv.weight, torch.cat(kernels)
    yield block.qkv.bias, torch.cat([file(f"{attention}/{kind}/bias").reshape(-1) for kind in QKV])
    yield block.out.weight, file(f"{attention}/out/kernel").reshape(HIDDEN, HIDDEN).T
    yield block.out.bias, file(f"{attention}/out/bias")
    for layer, dense in ((block.mlp[0], "Dense_0"), (block.mlp[3], "Dense_1")):
        yield layer.weight, file(f"{mlp}/{dense}/kernel").T
        yield layer.bias, file(f"{mlp}/{dense}/bias")
    for module, norm in ((block.norm1, "LayerNorm_0"), (block.norm2, "LayerNorm_2")):
        yield from zip((module.weight, module.bias), file.norm(f"{name}/{norm}"), strict=True)


def _places(table: Tensor, side: int) -> Tensor:
    """One vector a place, without that of the class token, on a grid of another size."""
    count = table.shape[1]
    old = int(count**0.5)
    grid = table[:, count - old * old :].transpose(1, 2).unflatten(2, (old, old))
    return F.interpolate(grid, (side, side), mode="bilinear", align_corners=True).flatten(2).transpose(1, 2)
