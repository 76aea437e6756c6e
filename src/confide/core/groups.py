"""What the other processes of a group measured, for statistics of a whole batch that is spread over them.

A group is None (this process alone), True (all processes, or this one alone where torch.distributed is not set up) or a
process group. Every process must make the same calls in the same order.
"""

from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, distributed

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    Group = ProcessGroup | bool | None
else:
    Group = Any

CHOICES = (None, True)
KIND: tuple[type, ...] = (distributed.ProcessGroup,) if distributed.is_available() else ()


def alone(group: Group) -> bool:
    """Whether there is nobody to ask."""
    return group is None or not (distributed.is_available() and distributed.is_initialized())


def summed(x: Tensor, group: Group) -> Tensor:
    """The sum over all processes; without gradient."""
    total = x.detach().clone()
    distributed.all_reduce(total, group=_handle(group))
    return total


def largest(x: Tensor, group: Group) -> Tensor:
    """The largest over all processes, entry by entry."""
    found = x.clone()
    distributed.all_reduce(found, op=distributed.ReduceOp.MAX, group=_handle(group))
    return found


def _handle(group: Group) -> "ProcessGroup | None":
    return None if group is True else cast("ProcessGroup", group)
