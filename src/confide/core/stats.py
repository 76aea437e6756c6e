"""Exact sums that merge with `+`: counts in int64, real numbers in fixed point at 2**-32.

Integer addition has no order, so a result has the same bits for any batch size, order or number of workers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from typing_extensions import Self

BITS = 32
ONE = 1 << BITS
LIMIT = float(1 << 26)  # largest number a row may bring: 10**11 such rows still fit the whole part


def to_units(values: Tensor) -> Tensor:
    """Each number to the nearest multiple of 2**-32, as int64.

    Scaling by a power of two and rounding are exact, so float32 needs no float64 on the way.
    """
    return (values * float(ONE)).round().to(torch.int64)


def exactly(x: Tensor) -> Tensor:
    """In float64 where there is one, so that the product of two float32 numbers is exact."""
    return x.float() if x.device.type == "mps" else x.double()


def scatter(values: Tensor, index: Tensor, size: int) -> Tensor:
    """Sum int64 `values` into `size` cells. Never waits for the device, unlike bincount."""
    if index.device.type == "mps":  # its atomics stop at 32 bits
        values, index = values.cpu(), index.cpu()
    return torch.zeros(size, dtype=torch.int64, device=index.device).scatter_add_(0, index, values)


@dataclass(frozen=True, eq=False)
class Fixed:
    """Real numbers `whole + fraction / 2**32` with `0 <= fraction < 2**32`: one way to write each number."""

    whole: Tensor
    fraction: Tensor

    @classmethod
    def carried(cls, whole: Tensor, fraction: Tensor) -> Fixed:
        """Move what the fraction has gathered past one (or below zero) into the whole part."""
        return cls(whole + (fraction >> BITS), fraction & (ONE - 1))

    @classmethod
    def total(cls, values: Tensor) -> Fixed:
        """The sum of all `values` (fewer than 2**31 of them, each within +-LIMIT)."""
        units = to_units(values)
        return cls.carried((units >> BITS).sum(), (units & (ONE - 1)).sum())

    @classmethod
    def zeros(cls, *shape: int) -> Fixed:
        return cls(torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.int64))

    @classmethod
    def of_counts(cls, counts: Tensor) -> Fixed:
        """Whole numbers."""
        return cls(counts, torch.zeros_like(counts))

    @classmethod
    def stack(cls, numbers: Sequence[Fixed]) -> Fixed:
        return cls(torch.stack([x.whole for x in numbers]), torch.stack([x.fraction for x in numbers]))

    @classmethod
    def spread(cls, units: Tensor, index: Tensor, size: int) -> Fixed:
        """The sum of `units` in each of `size` cells."""
        return cls.carried(scatter(units >> BITS, index, size), scatter(units & (ONE - 1), index, size))

    @property
    def shape(self) -> torch.Size:
        return self.whole.shape

    @property
    def device(self) -> torch.device:
        return self.whole.device

    def __add__(self, other: Fixed) -> Fixed:
        return Fixed.carried(self.whole + other.whole, self.fraction + other.fraction)

    def to(self, device: torch.device | str) -> Fixed:
        return Fixed(self.whole.to(device), self.fraction.to(device))

    def fold(self, groups: int) -> Fixed:
        """Sum neighbouring cells along the last axis into `groups` equal groups."""
        shape = (*self.whole.shape[:-1], groups, -1)
        return Fixed.carried(self.whole.reshape(shape).sum(-1), self.fraction.reshape(shape).sum(-1))

    def head(self, cells: int) -> Fixed:
        """The first cells, in memory of their own."""
        return Fixed(self.whole[:cells].clone(), self.fraction[:cells].clone())

    def reshape(self, *shape: int) -> Fixed:
        return Fixed(self.whole.reshape(shape), self.fraction.reshape(shape))

    def float(self) -> Tensor:
        """The nearest float64, on the CPU."""
        return self.whole.cpu().double() + self.fraction.cpu().double() / ONE

    def units(self) -> list[int]:
        """The exact values as Python integers, in units of 2**-32."""
        wholes, fractions = torch.stack((self.whole, self.fraction)).reshape(2, -1).tolist()
        return [(whole << BITS) + fraction for whole, fraction in zip(wholes, fractions, strict=True)]


@dataclass(frozen=True, eq=False)
class Stats:
    """A bag of sums. Each field is an int64 tensor, a `Fixed` or another bag; `+` adds them field by field."""

    def parts(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def n(self) -> int:
        """How many rows were added."""
        first = next(iter(self.parts().values()))
        return first.n() if isinstance(first, Stats) else int(first.sum())

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        theirs = other.parts()
        return dataclasses.replace(self, **{name: _add(mine, theirs[name]) for name, mine in self.parts().items()})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stats) or type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.tensors(), other.tensors()
        return mine.keys() == theirs.keys() and all(torch.equal(mine[k], theirs[k].to(mine[k].device)) for k in mine)

    __hash__ = None  # type: ignore[assignment]

    def zero(self) -> Self:
        """The neutral element of `+`, in the shape of these sums."""
        return self.filled({name: torch.zeros_like(part) for name, part in self.tensors().items()})

    def to(self, device: torch.device | str) -> Self:
        return dataclasses.replace(self, **{name: part.to(device) for name, part in self.parts().items()})

    @property
    def device(self) -> torch.device:
        return next(iter(self.tensors().values())).device

    def tensors(self) -> dict[str, Tensor]:
        """Every sum as a plain int64 tensor: what is stored in a file, or summed over processes."""
        return {name + tail: tensor for name, part in self.parts().items() for tail, tensor in _limbs(part).items()}

    def filled(self, tensors: Mapping[str, Tensor]) -> Self:
        """The way back from `tensors()`, of any size. Fractions summed elsewhere are carried here."""
        return dataclasses.replace(self, **{name: _read(part, tensors, name) for name, part in self.parts().items()})

    def pack(self, rank: int = 0, world: int = 1) -> Tensor:  # noqa: ARG002 (for sums with a place a process)
        """All sums as one vector, of a length that depends on the number of processes at most."""
        return torch.cat([part.reshape(-1) for part in self.tensors().values()])

    def packed_length(self, world: int = 1) -> int:  # noqa: ARG002
        """Of `pack()`."""
        return sum(part.numel() for part in self.tensors().values())

    def unpack(self, vector: Tensor, world: int = 1) -> Self:  # noqa: ARG002
        """The way back from `pack()`, or from a sum of such vectors, in the shape of these sums."""
        mine = self.tensors()
        parts = vector.split([part.numel() for part in mine.values()])
        return self.filled({name: x.view_as(mine[name]) for name, x in zip(mine, parts, strict=True)})


@dataclass(frozen=True, eq=False, repr=False)
class Bag(Stats):
    """Several kinds of sums as one."""

    def pack(self, rank: int = 0, world: int = 1) -> Tensor:
        return torch.cat([part.pack(rank, world) for part in self.parts().values()])

    def packed_length(self, world: int = 1) -> int:
        return sum(part.packed_length(world) for part in self.parts().values())

    def unpack(self, vector: Tensor, world: int = 1) -> Self:
        parts = self.parts()
        pieces = vector.split([part.packed_length(world) for part in parts.values()])
        both = zip(parts.items(), pieces, strict=True)
        return dataclasses.replace(self, **{name: part.unpack(piece, world) for (name, part), piece in both})


def _add(mine: Any, theirs: Any) -> Any:
    if isinstance(mine, Stats):
        return mine + theirs
    if mine.shape != theirs.shape:  # adding would stretch the smaller one without a word
        raise ValueError(f"sums of shape {tuple(mine.shape)} and {tuple(theirs.shape)} do not merge")
    return mine + theirs.to(mine.device)


def _limbs(part: Any) -> dict[str, Tensor]:
    """A part as tensors, with what is to be added to its name."""
    if isinstance(part, Stats):
        return {f".{name}": tensor for name, tensor in part.tensors().items()}
    return {".whole": part.whole, ".fraction": part.fraction} if isinstance(part, Fixed) else {"": part}


def _read(part: Any, tensors: Mapping[str, Tensor], name: str) -> Any:
    if isinstance(part, Fixed):
        return Fixed.carried(tensors[f"{name}.whole"], tensors[f"{name}.fraction"])
    if not isinstance(part, Stats):
        return tensors[name]
    return part.filled({k.removeprefix(f"{name}."): x for k, x in tensors.items() if k.startswith(f"{name}.")})
