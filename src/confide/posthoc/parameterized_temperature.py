"""Parameterized temperature scaling: a small network reads a temperature off each row's largest logits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from confide.core.simplex import one_hot
from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values, setting
from confide.posthoc.newton import descend
from confide.posthoc.temperature import fit_scale

UNITS = 5
REACH = 3.0  # T stays within a factor exp(3) of the global one
RIDGE = 1e-2


@dataclass(eq=False, kw_only=True)
class ParameterizedTemperature(Calibrator):
    """softmax(z / T(z)), T from two layers of five units on the sorted largest logits."""

    objective: str = setting("nll", choices=("nll", "brier"), doc="what the network minimises")
    top: int = setting(10, low=2, high=1000, doc="how many of the largest logits it sees")
    seed: int = setting(0, low=0, high=2**31, doc="of the first weights")
    card = Card(
        title="Parameterized temperature scaling (PTS)",
        cite="Tomani, Cremers and Buettner, ECCV 2022",
        formula="z / T(z), T from the largest logits",
        when="rows that need different temperatures; thousands of rows; keeps the predicted class",
        differs=(
            "The paper takes |MLP| as T, fits the squared error with Adam for 100,000 steps and feeds raw logits. Here "
            "T = T0 exp(.) around the global optimum T0, by NLL (objective='brier' as the paper) with L-BFGS, from "
            "logits below the largest, so that a constant changes nothing."
        ),
        keeps_argmax=True,
        pooled=True,
    )

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        start = fit_scale(z, y)
        z = z.double()
        seen = self._seen(z)
        fixed = {
            "temperature": start.values["temperature"].to(z.device),
            "centre": seen.mean(0),
            "spread": seen.std(0).clamp(min=1e-6),
        }
        shapes = [(UNITS, seen.shape[1]), (UNITS,), (UNITS, UNITS), (UNITS,), (1, UNITS), (1,)]
        first = _first(shapes, self.seed).to(z.device)

        def slope(flat: Tensor) -> tuple[Tensor, Tensor]:
            with torch.enable_grad():
                flat = flat.detach().requires_grad_()
                out = self.map(z, fixed | _unpack(flat, shapes))
                loss = _loss(out, y, self.objective) + RIDGE * flat.square().sum() / 2
                (gradient,) = torch.autograd.grad(loss, flat)
            return loss.detach(), gradient

        found, converged = descend(slope, first)
        return Learnt(fixed | _unpack(found, shapes), converged, start.note)

    def map(self, z: Tensor, values: Values) -> Tensor:
        v = {name: value.to(z.dtype) for name, value in values.items()}
        x = (self._seen(z) - v["centre"]) / v["spread"]
        x = torch.tanh(x @ v["weight0"].T + v["bias0"])
        x = torch.tanh(x @ v["weight1"].T + v["bias1"])
        return z / (v["temperature"] * torch.exp(REACH * torch.tanh(x @ v["weight2"].T + v["bias2"])))

    def _seen(self, z: Tensor) -> Tensor:
        largest = z.topk(min(self.top, z.shape[1]), 1).values
        return largest[:, 1:] - largest[:, :1]


def _first(shapes: list[tuple[int, ...]], seed: int) -> Tensor:
    """Random layers and a last one of zeros: the map begins as the global temperature."""
    generator = torch.Generator().manual_seed(seed)
    parts = [torch.randn(shape, generator=generator, dtype=torch.float64) / shape[-1] ** 0.5 for shape in shapes]
    return torch.cat([part.reshape(-1) * (number < 4) for number, part in enumerate(parts)])


def _unpack(flat: Tensor, shapes: list[tuple[int, ...]]) -> Values:
    names = ("weight0", "bias0", "weight1", "bias1", "weight2", "bias2")
    sizes = [torch.Size(shape).numel() for shape in shapes]
    return {n: part.view(shape) for n, part, shape in zip(names, flat.split(sizes), shapes, strict=True)}


def _loss(z: Tensor, y: Tensor, objective: str) -> Tensor:
    if objective == "nll":
        return torch.nn.functional.cross_entropy(z, y)
    return (z.softmax(1) - one_hot(z, y)).square().sum(1).mean()
