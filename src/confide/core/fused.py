"""Value and gradient of a loss in one pass, from its `loss` and `shift`: gradient = softmax - one_hot - shift.

No autograd graph is kept: the forward pass writes the gradient into one buffer of the input's size and dtype, and the
backward pass hands that buffer out.
"""

from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from confide.core.errors import SecondDerivativeError
from confide.core.rows import Kept, clean, mass_of
from confide.core.simplex import cross_entropy, one_hot, softmax


class Method(Protocol):
    """What a loss has to offer; `Loss` does."""

    ignore_index: int
    reduction: str
    weight: Tensor | None
    fits_labels: bool  # False for the loss without its cross-entropy

    loss: ClassVar[Callable[..., Tensor]]  # of z, y and the method's own context
    shift: ClassVar[Callable[..., Tensor]]

    @property
    def coupled(self) -> bool:
        """Whether the loss of a row depends on the other rows."""

    @property
    def compile_key(self) -> Hashable:
        """What tells apart the functions that are compiled for it."""


SMALLEST_CUT = 1 << 19  # in elements of the logits

Context = tuple[Tensor, ...]
Run = Callable[..., Any]


def value(method: Method, z: Tensor, y: Tensor, normalizer: Tensor | None, context: Context) -> Tensor:
    """The reduced loss alone; autograd can go through it."""
    kept = clean(z, y, method.ignore_index, method.weight)
    context = beyond(method, kept, context)
    return reduce(method, kept, losses_of(method, kept, context), denominator_of(method, kept, normalizer))


def value_and_gradient(
    method: Method,
    z: Tensor,
    y: Tensor,
    normalizer: Tensor | None,
    context: Context,
    upstream: Tensor | None = None,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The reduced loss, and its gradient on `z` (in `out`), times what comes from upstream if that is known already."""
    kept = clean(z, y, method.ignore_index, method.weight)
    context = beyond(method, kept, context)
    denominator = denominator_of(method, kept, normalizer)
    shift = method.shift(kept.z, kept.y, *context)
    gradient = softmax(kept.z) - one_hot(kept.z, kept.y) - shift if method.fits_labels else -shift
    scale = kept.weight if denominator is None else kept.weight / denominator
    if upstream is not None:
        scale = scale * upstream
    result = reduce(method, kept, losses_of(method, kept, context), denominator)
    gradient = gradient * scale.unsqueeze(1)
    if unrolls(method, z) and torch.compiler.is_compiling():
        gradient = torch.stack(gradient.unbind(1), 1)
    return result, gradient.to(z.dtype) if out is None else out.copy_(gradient)


def unrolls(method: Method, z: Tensor) -> bool:
    """Whether to compile dense logits class by class: one loop does it all with so few, if rows do not wait for others.

    More classes take minutes to compile.
    """
    return z.dim() == 3 and z.shape[1] <= 4 and z.device.type == "cpu" and not method.coupled


def beyond(method: Method, kept: Kept, context: Context) -> Context:
    """What the verbs get behind z and y: coupled methods also the weight of every row."""
    return (kept.weight, *context) if method.coupled else context


def losses_of(method: Method, kept: Kept, context: Context) -> Tensor:
    """One number a row."""
    losses = method.loss(kept.z, kept.y, *context)
    return losses if method.fits_labels else losses - cross_entropy(kept.z, kept.y)


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


def one_pass(
    method: Method,
    z: Tensor,
    y: Tensor,
    normalizer: Tensor | None,
    context: Callable[[], Context],
    compile: Callable[[Run], Run],
) -> Tensor:
    """The reduced loss with its gradient; `compile` takes a function of this file to what should run in its place."""
    loss: Tensor = _OnePass.apply(z, y, normalizer, method, context, compile)  # type: ignore[no-untyped-call]
    return loss


class _OnePass(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        y: Tensor,
        normalizer: Tensor | None,
        method: Method,
        around: Callable[[], Context],
        compile: Callable[[Run], Run],
    ) -> Tensor:
        context = around()  # here gradients are off already
        ctx.save_for_backward(z, y, normalizer, *context)
        ctx.method, ctx.compile, ctx.gradient = method, compile, None
        if z.dtype == torch.float16:
            # Divided by millions of pixels the gradient would underflow before a GradScaler's factor, which comes
            # from upstream, can lift it: it has to wait for that factor.
            return compile(value)(method, z, y, normalizer, context)  # type: ignore[no-any-return]
        result, ctx.gradient = in_blocks(compile(value_and_gradient), method, z.detach(), y, normalizer, context)
        return result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise SecondDerivativeError("the fused gradient has no derivative: build the loss with fused=False")
        # The buffer is given away, so that it can be scaled in place and adopted as .grad without a copy. Should
        # the graph have been retained for a second backward pass, that computes it again.
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is None:
            z, y, normalizer, *context = ctx.saved_tensors
            run = ctx.compile(value_and_gradient)
            gradient = in_blocks(run, ctx.method, z, y, normalizer, tuple(context), upstream)[1]
        else:
            gradient = _scale(gradient, upstream)
        return gradient, *[None] * (len(ctx.needs_input_grad) - 1)


def _scale(gradient: Tensor, upstream: Tensor) -> Tensor:
    if torch._C._functorch.is_legacy_batchedtensor(upstream):  # from autograd.grad(..., is_grads_batched=True)
        return gradient * (upstream.unsqueeze(1) if upstream.dim() else upstream)
    if upstream.dim():
        return gradient.mul_(upstream.unsqueeze(1))
    # Reading the number is free on the CPU and would be a sync elsewhere.
    unit = upstream.device.type == "cpu" and upstream.item() == 1
    return gradient if unit else gradient.mul_(upstream)


def in_blocks(
    run: Run,
    method: Method,
    z: Tensor,
    y: Tensor,
    normalizer: Tensor | None,
    context: Context,
    upstream: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`value_and_gradient` block by block, where a few numbers for every row would take more memory than the logits."""
    whole = unrolls(method, z) and run is not value_and_gradient  # one compiled loop, which needs no blocks
    rows, columns = (1, 1) if whole else _cuts(z)
    cut = rows * columns > 1 and method.reduction != "none" and not method.coupled
    if (cut or whole) and method.reduction == "mean" and normalizer is None:
        wide = torch.promote_types(z.dtype, torch.float32)
        normalizer = mass_of(y, method.ignore_index, method.weight, wide).sum()
    if not cut:
        result: tuple[Tensor, Tensor] = run(method, z, y, normalizer, context, upstream)
        return result
    gradient = torch.empty_like(z)
    blocks = zip(*(_split(x, rows, columns) for x in (z, y, gradient, *context)), strict=True)
    parts = [
        run(method, block, labels, normalizer, tuple(more), upstream, out)[0] for block, labels, out, *more in blocks
    ]
    return torch.stack(parts).sum(), gradient


def _cuts(z: Tensor) -> tuple[int, int]:
    """Into how many pieces to cut the rows, and the positions of dense logits. Only the CPU compiler needs it."""
    size = min(max(z.numel() // 16, SMALLEST_CUT // 4), 1 << 20)
    if z.numel() < 4 * size or z.shape[1] >= 128 or z.device.type != "cpu":
        return 1, 1
    pieces = z.numel() // size
    rows = min(len(z), pieces)
    return rows, -(-pieces // rows) if z.dim() == 3 else 1


def _split(x: Tensor, rows: int, columns: int) -> list[Tensor]:
    pieces = x.chunk(rows)
    return [part for piece in pieces for part in piece.chunk(columns, -1)] if columns > 1 else list(pieces)
