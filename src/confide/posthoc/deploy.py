"""A fitted map without its fit: a module for deployment, and layers that calibrate themselves."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from confide.core.errors import InputError
from confide.posthoc.guard import blend
from confide.posthoc.layout import MULTICLASS, MULTILABEL, two

if TYPE_CHECKING:
    from confide.posthoc.calibrator import Calibrator


class Calibrated(nn.Module):
    """Logits in, calibrated logits or log-probabilities out, in the dtype of the logits."""

    def __init__(self, calibrator: Calibrator) -> None:
        super().__init__()
        calibrator.require_fitted()
        self.owner = copy.copy(calibrator)
        self.shared = calibrator.card.pooled or len(calibrator.parts_) == 1
        for number, values in enumerate(calibrator.parts_):
            for name, value in values.items():
                self.register_buffer(f"{name}_{number}", value)  # in float64: a step must stay where it is

    def forward(self, logits: Tensor) -> Tensor:
        """Calibrated logits or log-probabilities, shaped like the logits."""
        owner = self.owner
        if owner.task_ == MULTICLASS:
            if owner.card.spatial or logits.dim() == 2:
                return self._run(logits, 0)
            axis = owner.dim % logits.dim()
            moved = logits.movedim(axis, -1)
            return self._run(moved.reshape(-1, owner.classes_), 0).reshape(moved.shape).movedim(-1, axis)
        if owner.task_ == MULTILABEL:
            columns = [self._single(s, 0 if self.shared else i) for i, s in enumerate(logits.unbind(owner.dim))]
            return torch.stack(columns, owner.dim)
        return self._single(logits, 0)

    def _single(self, s: Tensor, number: int) -> Tensor:
        pair = self._run(two(s.reshape(-1)), number)
        return (pair[:, 1] - pair[:, 0]).reshape(s.shape)

    def _run(self, z: Tensor, number: int) -> Tensor:
        values = {name: getattr(self, f"{name}_{number}") for name in self.owner.parts_[number]}
        share = values.get("share")
        out = self.owner.map(z, values)
        return out if self.owner.card.affine and share is None else blend(out, z, share)


def affine(calibrator: Calibrator) -> tuple[Tensor, Tensor]:
    """(W, b) such that the map is z @ W.T + b, in float64."""
    calibrator.require_fitted()
    if not calibrator.card.affine or any("share" in part for part in calibrator.parts_):
        raise InputError(
            f"{type(calibrator).__name__} is not an affine map of the logits, so that it cannot be folded into a "
            "layer: deploy to_module() behind it"
        )
    if calibrator.task_ == MULTICLASS:
        eye = torch.eye(calibrator.classes_, dtype=torch.float64)
        bias = calibrator.logits(torch.zeros_like(eye[:1]), calibrator.parts_[0])
        return (calibrator.logits(eye, calibrator.parts_[0]) - bias).T, bias[0]
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64)
    found = [calibrator.logits(two(ends), part) for part in calibrator.parts_]
    lines = torch.stack([pair[:, 1] - pair[:, 0] for pair in found])
    count = calibrator.classes_ if calibrator.task_ == MULTILABEL else 1
    lines = lines.expand(count, 2)
    return torch.diag(lines[:, 1] - lines[:, 0]), lines[:, 0]


def folded(calibrator: Calibrator, layer: nn.Module) -> nn.Module:
    """A copy of a linear or convolutional layer with the map inside."""
    scale, shift = affine(calibrator)
    if not isinstance(layer, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        raise InputError(f"can fold into Linear and Conv layers, got {type(layer).__name__}")
    if layer.weight.shape[0] != len(shift):
        raise InputError(f"the layer has {layer.weight.shape[0]} outputs, the calibrator was fitted on {len(shift)}")
    if not isinstance(layer, nn.Linear) and layer.groups > 1 and not torch.equal(scale, torch.diag(scale.diagonal())):
        raise InputError("a convolution in groups cannot mix its outputs: deploy to_module() behind it")
    new = copy.deepcopy(layer)
    place, dtype = layer.weight.device, layer.weight.dtype
    weight = torch.tensordot(scale, layer.weight.detach().double().cpu(), dims=1)
    bias = shift if layer.bias is None else scale @ layer.bias.detach().double().cpu() + shift
    new.weight = nn.Parameter(weight.to(place, dtype))
    new.bias = nn.Parameter(bias.to(place, dtype))
    return new
