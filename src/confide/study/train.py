"""Train one model with one criterion, and read the logits of a trained model."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from confide.data.split import Part

Criterion = Callable[[Tensor, Tensor], Tensor]
OnStep = Callable[[int, float], None]


def fit(
    make_model: Callable[[], nn.Module],
    criterion: Criterion,
    part: Part,
    *,
    epochs: int,
    lr: float,
    momentum: float = 0.9,
    batch_size: int = 128,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> nn.Module:
    """Build a model and train it with SGD; `on_step(step, loss)` runs after every step, from step 1.

    The seed alone fixes the initial weights and the batches, so runs that share it differ only in
    their criterion and can be compared in pairs. The caller's random state stays as it was.
    """
    with torch.random.fork_rng(devices=[]):  # CPU only: asking for more would start up the GPUs
        torch.default_generator.manual_seed(seed)
        model = make_model().train()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
        for step, index in enumerate(batches(len(part), batch_size, epochs, seed), start=1):
            loss = criterion(model(part.inputs[index]), part.targets[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if on_step is not None:
                on_step(step, loss.item())
    return model


def batches(size: int, batch_size: int, epochs: int, seed: int) -> Iterator[Tensor]:
    """Yield the row numbers of every batch, shuffled anew each epoch; the last of an epoch may be smaller."""
    # A generator of its own: a criterion or model that draws random numbers cannot change the batches.
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        yield from torch.split(torch.randperm(size, generator=generator), batch_size)


def steps(size: int, batch_size: int, epochs: int) -> int:
    """How many batches `batches` yields, for progress bars."""
    return epochs * -(-size // batch_size)


@torch.no_grad()
def predict(model: nn.Module, images: Tensor, batch_size: int = 1024) -> Tensor:
    """Return the logits for all images, with the model in evaluation mode during the call only."""
    was_training = model.training
    model.eval()
    logits = torch.cat([model(batch) for batch in torch.split(images, batch_size)])
    model.train(was_training)
    return logits
