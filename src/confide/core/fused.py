"""Value and gradient of a loss in one pass, from its `loss` and `shift`: gradient = softmax - one_hot - shift.

No autograd graph is kept: the forward pass writes the gradient into one buffer of the input's size and dtype, and the
backward pass hands that buffer out.
"""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from confide.core.errors import SecondDerivativeError
from confide.core.rows import Kept, clean, mass_of
from confide.core.simplex import one_hot, softmax


class Method(Protocol):
    """What a loss has to offer; `Loss` does."""

    ignore_index: int
    reduction: str
    weight: Tensor | None

    def loss(self, z: Tensor, y: Tensor) -> Tensor: ...
    def shift(self, z: Tensor, y: Tensor) -> Tensor: ...


Run = Callable[..., Any]


def value(method: Method, z: Tensor, y: Tensor, normalizer: Tensor | None) -> Tensor:
    """The reduced loss alone; autograd can go through it."""
    kept = clean(z, y, method.ignore_index, method.weight)
    return reduce(method, kept, method.loss(kept.z, kept.y), denominator_of(method, kept, normalizer))


def value_and_gradient(
    method: Method, z: Tensor, y: Tensor, normalizer: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The reduced loss, its gradient on `z`, and a divisor that the gradient still lacks, if any."""
    kept = clean(z, y, method.ignore_index, method.weight)
    denominator = denominator_of(method, kept, normalizer)
    result = reduce(method, kept, method.loss(kept.z, kept.y), denominator)
    gradient = softmax(kept.z) - one_hot(kept.z, kept.y) - method.shift(kept.z, kept.y)
    if z.dtype == torch.float16:
        # Divided by millions of pixels it would underflow before a GradScaler can lift it: divide afterwards.
        gradient = (gradient * kept.weight.unsqueeze(1)).clamp(-65504, 65504)
        return result, gradient.half(), denominator
    scale = kept.weight if denominator is None else kept.weight / denominator
    return result, (gradient * scale.unsqueeze(1)).to(z.dtype), None


def in_blocks(run: Run, method: Method, z: Tensor, y: Tensor, normalizer: Tensor | None) -> Any:
    """`value_and_gradient` block by block, where temporaries of a number or two a row would outgrow the cache."""
    rows, columns = _cuts(z)
    if rows * columns == 1 or method.reduction == "none":
        return run(method, z, y, normalizer)
    if method.reduction == "mean" and normalizer is None:
        normalizer = mass_of(y, method.ignore_index, method.weight, torch.promote_types(z.dtype, torch.float32)).sum()
    total, gradient, divisor = torch.zeros((), dtype=torch.float64), torch.empty_like(z), None
    for block, labels, out in zip(*(_split(x, rows, columns) for x in (z, y, gradient)), strict=True):
        part, slope, divisor = run(method, block, labels, normalizer)
        total += part
        out.copy_(slope)
    return total.to(part.dtype), gradient, divisor


def _cuts(z: Tensor) -> tuple[int, int]:
    """Into how many pieces to cut the rows, and the positions of dense logits."""
    size = min(max(z.numel() // 24, 1 << 15), 1 << 18)
    if z.numel() < 8 * size or z.device.type != "cpu":
        return 1, 1
    pieces = z.numel() // size
    rows = min(len(z), pieces)
    return rows, -(-pieces // rows) if z.dim() == 3 else 1


def _split(x: Tensor, rows: int, columns: int) -> list[Tensor]:
    pieces = x.chunk(rows)
    return [part for piece in pieces for part in piece.chunk(columns, -1)] if columns > 1 else list(pieces)


def denominator_of(method: Method, kept: Kept, normalizer: Tensor | None) -> Tensor | None:
    """What the mean divides by: the kept weight, unless the caller knows better; never 0."""
    if method.reduction != "mean":
        return None
    total = kept.mass.sum() if normalizer is None else normalizer
    return torch.where(total == 0, 1.0, total)


def reduce(method: Method, kept: Kept, losses: Tensor, denominator: Tensor | None) -> Tensor:
    """Rows to what the user asked for."""
    losses = losses * kept.weight
    if method.reduction == "none":
        return losses
    return losses.sum() if denominator is None else losses.sum() / denominator


def one_pass(method: Method, z: Tensor, y: Tensor, normalizer: Tensor | None, run: Run) -> Tensor:
    """The reduced loss, with the gradient already computed; `run` is `value_and_gradient`, compiled or not."""
    loss: Tensor = _OnePass.apply(z, y, normalizer, method, run)  # type: ignore[no-untyped-call]
    return loss


class _OnePass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, y: Tensor, normalizer: Tensor | None, method: Method, run: Run) -> Tensor:
        ctx.method, ctx.run = method, run
        ctx.save_for_backward(z, y, normalizer)
        result, *ctx.ready = in_blocks(run, method, z, y, normalizer)
        return result  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None, None]:
        if torch.is_grad_enabled():
            raise SecondDerivativeError("the fused gradient has no derivative: build the loss with fused=False")
        # The buffer is given away, so that it can be scaled in place and adopted as .grad without a copy. Should
        # the graph have been retained for a second backward pass, it is computed again.
        if ctx.ready is None:
            z, y, normalizer = ctx.saved_tensors
            _, *ctx.ready = in_blocks(ctx.run, ctx.method, z, y, normalizer)
        (gradient, divisor), ctx.ready = ctx.ready, None
        if divisor is not None:
            upstream = upstream / divisor
        return _scale(gradient, upstream), None, None, None, None


def _scale(gradient: Tensor, upstream: Tensor) -> Tensor:
    if upstream.dim():
        return gradient.mul_(upstream.unsqueeze(1))
    # Reading the number is free on the CPU and would be a sync elsewhere.
    unit = upstream.device.type == "cpu" and upstream.item() == 1
    return gradient if unit else gradient.mul_(upstream)
