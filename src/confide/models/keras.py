"""What the networks of label relaxation inherit from Keras: its batch norm, and its L2 terms.

Keras adds `factor * sum(weight ** 2)` to the loss, whose gradient is `2 * factor * weight`: SGD does the same with
`weight_decay = 2 * factor` for these weights, and for no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn

EPSILON, MOMENTUM = 1e-3, 0.01  # of Keras, whose momentum 0.99 torch counts from the other end


def batch_norm(channels: int) -> nn.BatchNorm2d:
    """Batch norm with the constants of Keras."""
    return nn.BatchNorm2d(channels, eps=EPSILON, momentum=MOMENTUM)


def decay_groups(model: nn.Module, factors: Mapping[nn.Conv2d | nn.Linear, float]) -> Iterator[dict[str, Any]]:
    """Parameter groups for torch.optim.SGD: each factor's weights with its decay, all the rest with none."""
    decayed = {id(module.weight) for module in factors}
    yield {"params": [p for p in model.parameters() if id(p) not in decayed], "weight_decay": 0.0}
    for factor in sorted(set(factors.values())):
        yield {"params": [m.weight for m, f in factors.items() if f == factor], "weight_decay": 2 * factor}


def convolutions(model: nn.Module) -> list[nn.Conv2d]:
    """Every convolution."""
    return [module for module in model.modules() if isinstance(module, nn.Conv2d)]


def start(model: nn.Module, initial: Callable[[Tensor], Tensor]) -> None:
    """First weights of convolutions and linear layers; biases are zero."""
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            initial(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
