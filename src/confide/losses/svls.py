"""Spatially varying label smoothing: near the border of an object, its label shades into that of the neighbours."""

from torch import Tensor

from confide.core.fused import Context
from confide.core.knobs import knob
from confide.core.neighbours import Neighbours, proportions
from confide.core.rows import Rows
from confide.core.simplex import cross_entropy, one_hot
from confide.losses.cross_entropy import CrossEntropy
from confide.losses.loss import Card, Loss


class SVLS(Loss):
    """Cross-entropy on a blurred label map: half of each label is the pixel's own, half comes from its neighbours.

    Logits are (N, C, d1, ..., dk), with at least one axis of pixels.
    """

    sigma: float = knob(default=1.0, low=0.1, high=100, doc="width of the Gaussian, in pixels")
    kernel_size: int = knob(default=3, low=1, high=31, step=2, doc="pixels of the window along every axis")
    card = Card(
        title="Spatially varying label smoothing",
        cite="Islam and Glocker, IPMI 2021",
        group="neighbours",
        formula="-sum_k t_k log p_k, t = 1/2 label + 1/2 Gaussian mean of the labels around",
        summary="the label of a pixel is half its own, half that of its neighbours",
        differs=(
            "The centre has the weight 1/2 whatever sigma is, so sigma only moves weight among the neighbours. The "
            "released 2-D code ignores its kernel size, and the copy of it in the code of NACL takes the centre from "
            "the wrong place in kernels above 3 (it then weighs 0.529 at size 5); here it is 1/2 for every size. "
            "Outside the image lies the nearest pixel again, as released. The released code fails on ignored labels; "
            "here ignored pixels leave the window and the rest, centre included, shares out their weight."
        ),
        masked=True,
        spatial=True,
    )
    limits = (({"kernel_size": 1}, CrossEntropy()),)

    def context(self, rows: Rows) -> Context:
        around = Neighbours.of(rows, self.ignore_index, self.kernel_size, "replicate")
        return around.gaussian(self.sigma)

    def loss(self, z: Tensor, y: Tensor, *around: Tensor) -> Tensor:
        return cross_entropy(z, proportions(z, y, *around))

    def shift(self, z: Tensor, y: Tensor, *around: Tensor) -> Tensor:
        return proportions(z, y, *around) - one_hot(z, y)
