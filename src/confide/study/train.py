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
    epochs: int = 25,
    lr: float = 0.1,
    momentum: float = 0.9,
    batch_size: int = 128,
    weight_decay: float = 0.0,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> nn.Module:
    """Build a model and train it with SGD on random batches; `on_step(step, loss)` runs after every step.

    The seed alone fixes the initial weights and the batches, so runs that share it differ only in
    their criterion and can be compared in pairs.
    """
    model = seeded(make_model, seed).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum, weight_decay=weight_decay)
    for step, index in enumerate(batches(len(part), batch_size, epochs, seed)):
        loss = criterion(model(part.images[index]), part.labels[index])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if on_step is not None:
            on_step(step, loss.item())
    return model


def seeded(make_model: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Build a model from a seed and leave the caller's random state as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make_model()


def batches(size: int, batch_size: int, epochs: int, seed: int) -> Iterator[Tensor]:
    """Yield the row numbers of every batch, shuffled anew each epoch; the last batch may be smaller."""
    # A generator of its own: a criterion that draws random numbers cannot change the batch order.
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        yield from torch.randperm(size, generator=generator).split(batch_size)


@torch.no_grad()
def predict(model: nn.Module, images: Tensor, batch_size: int = 1024) -> Tensor:
    """Return the logits for all images, with the model in evaluation mode during the call only."""
    was_training = model.training
    model.eval()
    logits = torch.cat([model(batch) for batch in images.split(batch_size)])
    model.train(was_training)
    return logits
