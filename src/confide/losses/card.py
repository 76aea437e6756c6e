"""The card of a train-time method."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Card:
    """What a reader of the method's page wants to know."""

    title: str
    cite: str
    group: str
    formula: str
    summary: str
    differs: str  # where paper, table and released code disagree, and which is followed
    invariant: bool = True  # a constant added to all logits of a row changes nothing
    balanced: bool = True  # the gradient of a row sums to zero: nothing pushes all logits together
    masked: bool = False  # classes may be masked with logits of -inf
    coupled: bool = False  # a row's loss depends on the rest of the batch
    spatial: bool = False  # a row is a pixel among others: logits are (N, C, d1, ..., dk)
    exempt: Mapping[str, str] = field(default_factory=dict)  # conformance checks that cannot hold, and why
