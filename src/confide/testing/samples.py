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


def variants(loss: type[Loss] | Make) -> Iterator[Make]:
    """The loss with its defaults, and once for every other value of a knob that offers a choice.

    Of a loss that cannot be built without arguments give `example`, or pass a factory: partial(MyLoss, 64).
    """
    make: Make = getattr(loss, "example", loss)
    yield make
    for name, k in knobs_of(type(make())).items():
        yield from (partial(make, **{name: value}) for value in k.choices if value != k.default)


def describe(make: Make) -> str:
    """A name for test reports."""
    return " ".join(repr(make()).split())


def batch(shape: tuple[int, ...] = (8, 5), dtype: torch.dtype = torch.float64, seed: int = 0) -> Batch:
    """Logits spread widely enough that distances exceed the usual margins, and labels that are often right."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(shape, generator=generator, dtype=torch.float64) * 12
    right = torch.rand(shape[:1] + shape[2:], generator=generator) < 0.6
    guess = torch.randint(shape[1], right.shape, generator=generator)
    return Batch(z.to(dtype), torch.where(right, z.argmax(1), guess))


def sample(make: Make, count: int = 8, dtype: torch.dtype = torch.float64, seed: int = 0) -> Batch:
    """So many rows of five classes. Losses that look at neighbouring pixels get them as lines of four.

    In every second line logits are of the size of proportions, with which such losses compare them.
    """
    if not make().traits.spatial:
        return batch((count, 5), dtype, seed)
    z, y = batch((count // 4, 5, 4), dtype, seed)
    z[::2] /= 12
    return Batch(z, y)


def soft(y: Tensor, classes: int, seed: int = 0) -> Tensor:
    """Random class probabilities for each label position, classes on axis 1."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.rand((*y.shape, classes), generator=generator, dtype=torch.float64) ** 2
    return (q / q.sum(-1, keepdim=True)).movedim(-1, 1)


def one_hot(y: Tensor, classes: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Index targets as class probabilities, classes on axis 1."""
    return torch.nn.functional.one_hot(y, classes).movedim(-1, 1).to(dtype)


def side_of(criterion: Callable[..., Tensor], z: Tensor) -> dict[str, Tensor]:
    """What the criterion must be told about these logits beside their target."""
    tell = getattr(criterion, "example_side", None)
    if tell is None:
        return {}
    shape = list(z.shape)
    del shape[min(criterion.dim, z.dim() - 1)]  # type: ignore[attr-defined]
    return tell(tuple(shape))  # type: ignore[no-any-return]


def part_of(side: dict[str, Tensor], part: Any) -> dict[str, Tensor]:
    """Some of the rows."""
    return {name: tensor[part] for name, tensor in side.items()}


def reductions(make: Make) -> tuple[str, ...]:
    """Those that the loss has."""
    return ("mean", "sum") if make().coupled else ("mean", "sum", "none")


def call(criterion: Callable[..., Tensor], z: Tensor, y: Tensor, **options: Any) -> Tensor:
    """The loss, told what it must be told; `options` come first."""
    return criterion(z, y, **(side_of(criterion, z) | options))


def run(criterion: Callable[..., Tensor], z: Tensor, y: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    """The loss, and the gradient of its sum."""
    z = z.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    value = call(criterion, z, y, **options)
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
