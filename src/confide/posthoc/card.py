"""The card of a post-hoc calibrator."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Card:
    """What a reader of the method's row in the documentation wants to know."""

    title: str
    cite: str
    formula: str
    when: str  # what it is good for, and what it needs
    differs: str  # where paper and released code disagree, and what is done here
    affine: bool = False  # the map is affine in the logits, so that it folds into the last layer
    keeps_argmax: bool = False  # the predicted class never changes
    pooled: bool = False  # in multi-label data one map serves all labels; otherwise each has its own
    spatial: bool = False  # looks at neighbouring pixels: logits are (N, C, H, W)
    onnx: bool = True  # its module exports to ONNX
    extra: bool = False  # needs the extra `posthoc`
    exempt: Mapping[str, str] = field(default_factory=dict)  # conformance checks that cannot hold, and why
