"""Monte Carlo dropout: dropout stays on at test time, and the probabilities of several passes are averaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from confide.core.errors import InputError


def mc_dropout(model: nn.Module, inputs: Tensor, passes: int = 10, seed: int = 0) -> Tensor:
    """Logs of the mean probabilities over the passes (Gal and Ghahramani, ICML 2016), to use like logits.

    Only dropout is random: batch norm stays as in evaluation. The model's modes and the random state stay as they were.
    """
    if passes < 1:
        raise InputError(f"at least one pass is needed, not {passes}")
    devices = [inputs.device] if inputs.is_cuda else []
    with torch.random.fork_rng(devices=devices), torch.no_grad(), _only_dropout(model):
        torch.manual_seed(seed)
        total = torch.stack([model(inputs).log_softmax(1) for _ in range(passes)]).logsumexp(0)
    return total - torch.tensor(float(passes)).log().to(total)


@contextmanager
def _only_dropout(model: nn.Module) -> Iterator[None]:
    modes = {module: module.training for module in model.modules()}
    drops = [module for module in modes if isinstance(module, _DropoutNd)]
    if not any(module.p > 0 for module in drops):
        raise InputError(f"{type(model).__name__} has no dropout, so all passes would be the same")
    try:
        model.eval()
        for module in drops:
            module.train()
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode
