"""Local temperature scaling: a temperature for each pixel, from the logits around it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values, setting
from confide.posthoc.guard import last
from confide.posthoc.layout import SKIP
from confide.posthoc.temperature import fit_scale

REACH = 2.0  # T stays within a factor exp(2) of the global one
WINDOW, DILATION = 5, 2


@dataclass(eq=False, kw_only=True)
class LocalTemperature(Calibrator):
    """softmax(z / T(pixel)), T from a tree of gated convolutions on the logits."""

    steps: int = setting(100, low=1, high=100_000, doc="of Adam")
    rate: float = setting(0.02, low=1e-6, high=1, doc="step size")
    seed: int = setting(0, low=0, high=2**31, doc="of the first weights and the order of the images")
    card = Card(
        title="Local temperature scaling (LTS)",
        cite="Ding et al., ICCV 2021",
        formula="z / T(z around the pixel)",
        when="segmentation whose borders need another temperature than its areas; keeps the predicted class",
        differs=(
            "The released code adds 1 at the leaves and at the root, so that it begins at T = 2; it also convolves the "
            "image, and needs images wider than its reflected border. Here four leaves and three gates, 5 x 5 with "
            "dilation 2 on the logits alone, begin at the global optimum and multiply it."
        ),
        keeps_argmax=True,
        spatial=True,
    )

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        start = fit_scale(*last(z, y))
        fixed = {"temperature": start.values["temperature"].to(z.device)}
        weights = _first(z.shape[1], self.seed, z.device)
        with torch.enable_grad():
            found = self._train(z, y, fixed, weights)
        return Learnt(fixed | found, True, start.note)

    def map(self, z: Tensor, values: Values) -> Tensor:
        v = {name: value.to(z.dtype) for name, value in values.items()}
        low = z - z.amax(1, keepdim=True)
        border = DILATION * (WINDOW // 2)
        padded = F.pad(low / v["temperature"], [border] * 4, mode="replicate")
        maps = F.conv2d(padded, v["weight"], v["bias"], dilation=DILATION)
        g = maps[:, :3].sigmoid()
        left = g[:, 1:2] * maps[:, 3:4] + (1 - g[:, 1:2]) * maps[:, 4:5]
        right = g[:, 2:3] * maps[:, 5:6] + (1 - g[:, 2:3]) * maps[:, 6:7]
        tree = g[:, :1] * left + (1 - g[:, :1]) * right
        return z / (v["temperature"] * torch.exp(REACH * torch.tanh(tree)))

    def _train(self, z: Tensor, y: Tensor, fixed: Values, weights: Values) -> Values:
        """Adam on one image a step; the best of a few looks at all of them is kept, the start among them."""
        for weight in weights.values():
            weight.requires_grad_()
        optimiser = torch.optim.Adam(weights.values(), lr=self.rate)
        generator = torch.Generator().manual_seed(self.seed)
        best, lowest = _copy(weights), self._nll(z, y, fixed | weights)
        for step in range(self.steps):
            i = int(torch.randint(len(z), (1,), generator=generator))
            optimiser.zero_grad()
            labels = torch.where(y[i : i + 1] == SKIP, -100, y[i : i + 1])
            if bool((labels != -100).any()):
                F.cross_entropy(self.map(z[i : i + 1].float(), fixed | weights), labels).backward()
                optimiser.step()
            if (step + 1) % max(1, self.steps // 5) == 0:
                value = self._nll(z, y, fixed | weights)
                best, lowest = (_copy(weights), value) if value < lowest else (best, lowest)
        return best

    @torch.no_grad()
    def _nll(self, z: Tensor, y: Tensor, values: Values) -> float:
        parts = zip(z.split(1), torch.where(y == SKIP, -100, y).split(1), strict=True)
        total = sum(float(F.cross_entropy(self.map(a.double(), values), b, reduction="sum")) for a, b in parts)
        return total / int((y != SKIP).sum())


def _first(classes: int, seed: int, device: torch.device) -> Values:
    """Small gates and leaves of zero: the map begins as the global temperature."""
    weight = torch.randn(7, classes, WINDOW, WINDOW, generator=torch.Generator().manual_seed(seed)) * 0.02
    weight[3:] = 0
    return {"weight": weight.to(device), "bias": torch.zeros(7, device=device)}


def _copy(values: Values) -> Values:
    return {name: value.detach().clone() for name, value in values.items()}
