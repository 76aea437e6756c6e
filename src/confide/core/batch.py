"""Statistics of all rows of a batch, and the derivatives of confidences."""

from collections.abc import Callable

import torch
from torch import Tensor

from confide.core.groups import Group, summed
from confide.core.rows import Kept
from confide.core.simplex import log_norm, lowered, one_hot, predicted, softmax, top


def mean(x: Tensor, weight: Tensor) -> Tensor:
    """The weighted mean over rows and positions, shaped to go with `x`; 0 where nothing weighs anything."""
    total = weight.sum()
    return (x * weight.unsqueeze(1)).sum([0, *range(2, x.dim())], keepdim=True) / torch.where(total > 0, total, 1.0)


def elsewhere(means: Callable[..., tuple[Tensor, ...]], kept: Kept, group: Group) -> tuple[Tensor, ...]:
    """What the means over a whole group exceed those of this process by.

    Added to the means of this process, which carry the gradient, it gives those of the group. Their gradient is then
    too large by the group's weight over that of this process: just what is undone by a mean over the rows of this
    process and DDP's mean over the processes.
    """
    own, total = means(kept.z, kept.y, kept.weight), kept.weight.sum()
    sums = summed(torch.cat([*(x.flatten() * total for x in own), total.reshape(1)]), group)
    *parts, everywhere = sums.split([*(x.numel() for x in own), 1])
    safe = torch.where(everywhere > 0, everywhere, 1.0)
    return tuple(part.view_as(mine) / safe - mine for part, mine in zip(parts, own, strict=True))


def correct(z: Tensor, y: Tensor) -> Tensor:
    """Whether a row is predicted right, as (N, 1) or (N, 1, M); under a soft target how probably."""
    z = z.detach()
    return torch.where(predicted(z), one_hot(z, y), 0.0).sum(1, keepdim=True)


def confidence(z: Tensor) -> Tensor:
    """The probability of the predicted class, as (N, 1) or (N, 1, M)."""
    # The difference is 0, but the gradient goes through it; faster than to pick from the softmax.
    return (top(z) - z.detach().amax(1, keepdim=True) - log_norm(lowered(z))).exp()


def confidence_slope(z: Tensor) -> Tensor:
    """The derivative of `confidence` on the logits."""
    return confidence(z) * (predicted(z).to(z.dtype) - softmax(z))


def expectation(p: Tensor, worth: Tensor) -> Tensor:
    """The mean of a number a class under the probabilities, as (N, 1) or (N, 1, M)."""
    return (p * worth).sum(1, keepdim=True)


def tilt(p: Tensor, worth: Tensor) -> Tensor:
    """The derivative of `expectation` on the logits."""
    return p * (worth - expectation(p, worth))


def drawn(keep: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """One row at random from each of `count` runs of equally many rows to keep: their numbers, and which are real.

    All of them where there are fewer; the rest of the numbers is not real then. No host sync.
    """
    number = keep.cumsum(0)
    total = keep.sum()
    edges = torch.arange(count + 1, device=keep.device) * total.clamp(min=count) // count
    start, width = edges[:-1], edges.diff()
    chosen = start + (torch.rand(count, device=keep.device) * width).long().minimum(width - 1)
    return torch.searchsorted(number, chosen + 1).clamp(max=len(keep) - 1), chosen < total


def take(x: Tensor, number: Tensor, z: Tensor) -> Tensor:
    """The numbered rows of a tensor shaped like `z` or like its labels."""
    if z.dim() == 2:
        return x[number]
    row, place = number // z.shape[2], number % z.shape[2]
    return x[row, :, place] if x.dim() == 3 else x[row, place]


def following(keep: Tensor) -> Tensor:
    """For every row the number of the next row to keep, after the last one the first."""
    rows = len(keep)
    # In few bytes: for every row several such numbers are held at once.
    number = torch.arange(rows, device=keep.device, dtype=torch.int32 if rows < 1 << 29 else torch.int64)
    if not rows:
        return number
    kept = torch.where(keep, number, 2 * rows)  # beyond the first of the next round, which is less than this
    first = kept.long().amin(0, keepdim=True).to(kept.dtype)  # the GPU compiler of torch 2.11 fails on int32 here
    later = torch.cat((kept[1:], first + rows))
    return later.flip(0).cummin(0).values.flip(0) % rows


def misplaced(z: Tensor, weight: Tensor, history: Tensor) -> Tensor:
    """Rows that with the next row to keep, or the one before, stand in the wrong order: more often right, less sure."""
    keep, h = weight.flatten() > 0, history.flatten()
    # By what the confidence lacks, 1/c - 1, which also tells apart confidences that round to 1.
    doubt = torch.where(predicted(z), 0.0, lowered(z).exp()).sum(1).flatten()
    partner = following(keep)
    wrong = ((h - h[partner]).sign() * (doubt - doubt[partner]).sign() > 0) & keep
    handed = torch.zeros_like(h).index_add(0, partner, wrong.to(h.dtype))
    return (wrong | (handed > 0)).view_as(weight)
