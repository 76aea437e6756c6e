"""Small batches on which every regulariser acts, and the ways in which a test runs a loss on them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from confide.core.knobs import knobs_of
from confide.losses.loss import Loss

Make = Callable[..., Loss]
SHAPES = ((8, 5), (1, 5), (2, 5, 7), (2, 5, 3, 4), (2, 3, 2, 2, 3))


class Batch(NamedTuple):
    """Logits and labels."""

    z: Tensor
    y: Tensor


def variants(kind: type[Loss]) -> Iterator[Make]:
    """The loss with its defaults, and once for every other value of a knob that offers a choice."""
    yield kind
    for name, k in knobs_of(kind).items():
        yield from (partial(kind, **{name: value}) for value in k.choices if value != k.default)


def describe(make: Make) -> str:
    """A name for test reports."""
    return repr(make())


def batch(shape: tuple[int, ...] = (8, 5), dtype: torch.dtype = torch.float64, seed: int = 0) -> Batch:
    """Logits spread widely enough that distances exceed the usual margins, and labels that are often right."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(shape, generator=generator, dtype=torch.float64) * 12
    right = torch.rand(shape[:1] + shape[2:], generator=generator) < 0.6
    guess = torch.randint(shape[1], right.shape, generator=generator)
    return Batch(z.to(dtype), torch.where(right, z.argmax(1), guess))


def soft(y: Tensor, classes: int, seed: int = 0) -> Tensor:
    """Random class probabilities for each label position, classes on axis 1."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.rand((*y.shape, classes), generator=generator, dtype=torch.float64) ** 2
    return (q / q.sum(-1, keepdim=True)).movedim(-1, 1)


def one_hot(y: Tensor, classes: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Index targets as class probabilities, classes on axis 1."""
    return torch.nn.functional.one_hot(y, classes).movedim(-1, 1).to(dtype)


def run(criterion: Callable[..., Tensor], z: Tensor, y: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    """The loss, and the gradient of its sum."""
    z = z.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    value = criterion(z, y, **options)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    return value.detach(), gradient


def expect_close(found: Tensor, wanted: Tensor, tolerance: float, what: str) -> None:
    """Equal up to `tolerance`, absolute or relative to the largest entry."""
    scale = max(1.0, float(wanted.abs().max())) if wanted.numel() else 1.0
    error = float((found - wanted).abs().max()) / scale if wanted.numel() else 0.0
    assert found.shape == wanted.shape, f"{what}: shape {tuple(found.shape)} instead of {tuple(wanted.shape)}"
    assert error <= tolerance, f"{what}: differs by {error:.3g}, allowed {tolerance:.3g}"


def expect_error(kind: type[Exception], wording: str, call: Callable[[], Any]) -> None:
    """The call fails with this kind of error, and says so in these words."""
    try:
        call()
    except kind as error:
        assert wording in str(error), f"the error should say {wording!r}, it says {str(error)!r}"
    else:
        raise AssertionError(f"expected {kind.__name__} with {wording!r}, nothing was raised")
