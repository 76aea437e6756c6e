"""NACL: pull logits toward the proportions of the classes around the pixel."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from confide.core.fused import Context
from confide.core.knobs import knob
from confide.core.neighbours import Neighbours, proportions
from confide.core.rows import Rows
from confide.core.simplex import cross_entropy, one_hot, softmax
from confide.core.windows import gaussian
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss

SHARES, NUMBERS, IMAGES = ("mean", "gaussian"), ("max", "min", "median", "mode"), ("bilateral", "proportions")


class NACL(Loss):
    """Cross-entropy with a penalty on the distance of every logit from the share of its class in a window.

    Logits are (N, C, d1, ..., dk), with at least one axis of pixels. The priors "bilateral" and "proportions" weigh a
    neighbour by how much it looks like the pixel itself, and need `image=`, (N, channels, d1, ..., dk), in every call.
    """

    strength: float = knob(default=0.1, low=0, high=100, doc="weight of the penalty (paper: lambda)")
    prior: str = knob(
        default="mean", choices=SHARES + NUMBERS + IMAGES, doc="what the window says about its centre (paper: tau)"
    )
    kernel_size: int = knob(default=3, low=1, high=31, step=2, doc="pixels of the window along every axis")
    distance: str = knob(default="l1", choices=("l1", "l2"), doc="absolute or squared distance from the prior")
    on: str = knob(default="logits", choices=("logits", "probs"), doc="what is compared with the prior")
    padding: str = knob(
        default="inside", choices=("inside", "replicate", "background"), doc="outside lies nothing, the edge, class 0"
    )
    over: str = knob(default="mean", choices=("mean", "sum"), doc="over the classes: mean as released, sum as printed")
    sigma: float = knob(default=1.0, low=0.1, high=100, doc="width in pixels of the priors gaussian and bilateral")
    contrast: float = knob(default=1.0, low=1e-6, high=1e6, doc="image difference that lowers a weight to 1/e")
    image_distance: str = knob(default="l2", choices=("l1", "l2"), doc="absolute or squared, summed over channels")
    card = Card(
        title="Neighbour-aware calibration",
        cite="Murugesan et al., MICCAI 2023",
        group="neighbours",
        formula="CE + strength mean_k |z_k - t_k|, t = proportions of the classes in the window",
        summary="logits stay small, and near what the labels around say",
        differs=(
            "The paper sums over the classes, the released code takes the mean; `over` chooses. Proportions lie "
            "between 0 and 1 but are compared with logits: the penalty holds logits small, a constant added to all of "
            "them changes it, and its gradients do not sum to zero; on='probs' has none of this. Outside the image "
            "the released code sees class 0, MONAI's nothing without counting less, so that proportions in a corner "
            "sum to 0.44; here only real pixels count (padding='background' is the released way). The released "
            "bilateral weights grow with the difference of the pixels and are not normalised; here they fall with it. "
            "MONAI's gaussian is an ordinary one; here it is that of SVLS, as released, for size 3. Both codes fail "
            "on ignored labels or count them; here they leave the window."
        ),
        invariant=False,
        balanced=False,
        spatial=True,
        exempt={
            "soft_is_expectation": "the penalty is not linear in its prior, so that of a mixed label map is not the "
            "mixture of the penalties of its maps"
        },
    )
    limits = (({"strength": 0.0}, CrossEntropy()),)

    @property
    def traits(self) -> Card:
        return _card(self.on, self.prior, self.padding)

    def example_side(self, shape: tuple[int, ...]) -> dict[str, Tensor]:
        if self.prior not in IMAGES or len(shape) < 2:
            return {}
        pixels = torch.arange(math.prod(shape[1:]), dtype=torch.float64).reshape(shape[1:])
        return {"image": torch.stack((pixels.sin(), (2 * pixels).cos())).expand(shape[0], 2, *shape[1:])}

    def context(self, rows: Rows, *, image: Tensor | None = None) -> Context:
        around = Neighbours.of(rows, self.ignore_index, self.kernel_size, self.padding)
        if self.prior == "mean":
            return around.mean()
        if self.prior == "gaussian":
            return around.gaussian(self.sigma)
        if self.prior == "bilateral":
            return around.resembling(image, self._likeness, gaussian(self.kernel_size, self.sigma))
        if self.prior == "proportions":
            return around.resembling(image, self._likeness, [1.0] * (self.kernel_size // 2))
        return around.ranked(self.prior)

    def loss(self, z: Tensor, y: Tensor, *around: Tensor) -> Tensor:
        off = self._off(z, y, *around)
        return cross_entropy(z, y) + self._rate(z) * (off.abs() if self.distance == "l1" else off.square()).sum(1)

    def shift(self, z: Tensor, y: Tensor, *around: Tensor) -> Tensor:
        off = self._off(z, y, *around)
        pull = off.sign() if self.distance == "l1" else 2 * off
        if self.on == "probs":
            p = softmax(z)
            pull = p * (pull - (p * pull).sum(1, keepdim=True))
        return -self._rate(z) * pull

    def _off(self, z: Tensor, y: Tensor, *around: Tensor) -> Tensor:
        prior = one_hot(z, *around) if self.prior in NUMBERS else proportions(z, y, *around)
        return (softmax(z) if self.on == "probs" else z) - prior

    def _rate(self, z: Tensor) -> float:
        return self.strength / z.shape[1] if self.over == "mean" else self.strength

    def _likeness(self, difference: Tensor) -> Tensor:
        scaled = difference / self.contrast
        return (-(scaled.abs() if self.image_distance == "l1" else scaled.square()).sum(1, keepdim=True)).exp()


def _card(on: str, prior: str, padding: str) -> Card:
    """What the card says for these knobs."""
    free, exempt = on == "probs", dict(NACL.card.exempt)
    if prior in NUMBERS:
        exempt["classes_can_be_renamed"] = "this prior is one class number of the window, and their order decides"
    elif padding == "background":
        exempt["classes_can_be_renamed"] = "class 0 is what lies outside the image"
    return replace(NACL.card, invariant=free, balanced=free, exempt=exempt)
