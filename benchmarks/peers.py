"""What other libraries offer, called as their own documentation says, for the comparison in losses.py.

A peer that is not installed, or does not import, is left out and said so.
"""

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Criterion = Callable[[Tensor, Tensor], Tensor]


def torch_smoothing() -> Criterion:
    return functools.partial(F.cross_entropy, label_smoothing=0.05)


def label_relaxation_package() -> Criterion:
    from label_relaxation import LabelRelaxationLoss

    criterion: Criterion = LabelRelaxationLoss(alpha=0.1)
    return lambda logits, target: criterion(logits.movedim(1, -1), target)  # its class axis is the last


def kornia_focal() -> Criterion:
    from kornia.losses import FocalLoss

    return FocalLoss(alpha=None, gamma=3.0, reduction="mean")  # type: ignore[no-any-return]


def monai_focal() -> Criterion:
    from monai.losses import FocalLoss

    criterion: Criterion = FocalLoss(use_softmax=True, to_onehot_y=True, gamma=3.0)
    return lambda logits, target: criterion(logits, target.unsqueeze(1))


def monai_nacl() -> Criterion:
    from monai.losses import NACLLoss

    @functools.cache
    def build(classes: int) -> Criterion:
        return NACLLoss(classes=classes, dim=2, kernel_size=3)  # type: ignore[no-any-return]

    return lambda logits, target: build(logits.shape[1])(logits, target)


def timm_smoothing() -> Criterion:
    from timm.loss import LabelSmoothingCrossEntropy

    return LabelSmoothingCrossEntropy(0.05)  # type: ignore[no-any-return]


def torch_uncertainty_penalty() -> Criterion:
    from torch_uncertainty.losses import ConfidencePenaltyLoss

    return ConfidencePenaltyLoss(reg_weight=0.1)  # type: ignore[no-any-return]


def torch_uncertainty_focal() -> Criterion:
    from torch_uncertainty.losses import FocalLoss

    return FocalLoss(gamma=3.0)  # type: ignore[no-any-return]


# Name, maker, and how many axes its logits may have; others raise, or take the wrong axis in silence.
PEERS: tuple[tuple[str, Callable[[], Criterion], tuple[int, ...]], ...] = (
    ("torch, smoothing", torch_smoothing, (2, 4)),
    ("label-relaxation", label_relaxation_package, (2, 4)),
    ("kornia, focal", kornia_focal, (2, 4)),
    ("MONAI, focal", monai_focal, (4,)),
    ("MONAI, NACL", monai_nacl, (4,)),
    ("timm, smoothing", timm_smoothing, (2,)),
    ("t-uncertainty, CP", torch_uncertainty_penalty, (2,)),
    ("t-uncertainty, FL", torch_uncertainty_focal, (2,)),
)


def peers(axes: int) -> dict[str, Criterion]:
    """Those that can be had here, for logits with so many axes."""
    found = {}
    for name, make, fits in PEERS:
        try:
            if axes in fits:
                found[name] = make()
        except (ImportError, RuntimeError) as error:
            print(f"  {name} left out: {error}")
    return found


def declare_schemas() -> torch.library.Library:
    """Let torchvision's wheel import next to a CPU build of torch, where its operators do not load; keep the result."""
    library = torch.library.Library("torchvision", "DEF")
    if not torch.cuda.is_available():
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library
