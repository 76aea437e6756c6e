"""Losses add up: `a + b` and `2 * a` are losses again, and any module or function of (input, target) may be among them.

criterion = MbLS(margin=5) + dice                       # any module whose result is one number
criterion = MbLS() + 0.5 * ACLS().penalty_only()        # two penalties, one cross-entropy
criterion = MbLS() + (lambda input, target: 0.5 * dice(input, target.unsqueeze(1)))

The last is the adapter for MONAI's DiceLoss(to_onehot_y=True, softmax=True), which wants a class axis in the target.
Like any module that is not confide's it cannot be multiplied itself and knows nothing of `ignore_index`. Where it holds
buffers that must follow `.to(device)`, write a small nn.Module instead of a lambda.

Every loss of confide fits the labels by itself, with cross-entropy or with something in its place. So an addition whose
two sides both do so is refused where their weights add up to more than 1: cross-entropy would count more than once.
"""

import copy
import inspect
import math
from collections.abc import Callable, Container, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from confide.core.errors import InputError, KnobError
from confide.core.rows import arrange
from confide.losses.declared import side_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from confide.losses.loss import Loss

SHARED = ("ignore_index", "dim", "reduction")  # options on which the parts of one loss must agree
SLACK = 1e-6  # weights such as 0.1 add up to 1 only nearly


class Term(NamedTuple):
    """One part of a sum."""

    weight: float
    part: nn.Module


class Composable(nn.Module):
    """What adds up: every loss of confide, and every sum of them."""

    fits_labels = True  # whether it holds cross-entropy, or something in its place

    def __add__(self, other: Callable[..., Tensor]) -> "Composed":
        return _added(_terms_of(self), _terms_of(other))

    def __radd__(self, other: Callable[..., Tensor] | int) -> "Composed":
        if isinstance(other, int) and other == 0:  # where the builtin `sum` starts
            return self * 1
        return _added(_terms_of(other), _terms_of(self))

    def __mul__(self, factor: float) -> "Composed":
        if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not math.isfinite(factor):
            raise KnobError(f"a loss can be multiplied by a finite number only, not by {factor!r}")
        return Composed([Term(factor * weight, part) for weight, part in _terms_of(self)])

    __rmul__ = __mul__

    def penalty_only(self) -> "Self":
        """A copy without its cross-entropy, to be added to another loss; `smoothing` and `target` stay the whole's.

        Of a loss that puts something in the place of cross-entropy it is the difference, which may be negative.
        """
        part = copy.deepcopy(self)
        part.fits_labels = False
        return part


class Composed(Composable):
    """A weighted sum of losses. Its weights may change between batches: `criterion.weights[1] = 0.5`."""

    def __init__(self, terms: Iterable[Term]) -> None:
        super().__init__()
        weights, parts = zip(*terms, strict=True)
        self.weights: list[float] = list(weights)
        self.parts = nn.ModuleList(parts)
        self._takes = [_keywords(part) for part in parts]  # read here, since a compiler cannot

    def forward(self, input: Tensor, target: Tensor, **side: Any) -> Tensor:
        """The sum. A keyword, such as `normalizer` or a side tensor, goes to every part that takes it."""
        return self._sum([part(input, target, **more) for part, more in self._calls(side)])

    @torch.no_grad()
    def terms(self, input: Tensor, target: Tensor, **side: Any) -> dict[str, Tensor]:
        """For logging: the loss, its cross-entropy, the rest, and the share of entries where a penalty acts.

        Behind these every part by its name, times its weight, so that the parts add up to the loss.
        """
        calls = self._calls(side)
        told = [_told(part, input, target, more) for part, more in calls]
        loss, ce = (self._sum([terms[name] for terms in told]) for name in ("loss", "ce"))
        result = {"loss": loss, "ce": ce, "penalty": loss - ce, "active": self._active(input, target, calls)}
        for (part, _), weight, terms in zip(calls, self.weights, told, strict=True):
            result[_free(_name(part), result)] = weight * terms["loss"]
        return result

    def penalty_only(self) -> "Composed":
        """The sum of the penalties, and of all parts that do not fit the labels."""
        return Composed(
            Term(weight, part.penalty_only() if isinstance(part, Composable) else part)
            for weight, part in _terms_of(self)
            if isinstance(part, Composable) or not _fits_labels(part)
        )

    def __repr__(self) -> str:
        shown = zip(self.weights, self.parts, strict=True)
        return " + ".join(repr(part) if weight == 1 else f"{weight:g} * {part!r}" for weight, part in shown)

    def _calls(self, side: dict[str, Any]) -> list[tuple[nn.Module, dict[str, Any]]]:
        """Every part, with those keywords that it takes."""
        for name in side:
            if not any(takes is None or name in takes for takes in self._takes):
                known = sorted({name for takes in self._takes for name in takes or ()})
                raise TypeError(f"no part of this loss takes {name}=; what they take: {', '.join(known)}")
        return [
            (part, {name: value for name, value in side.items() if takes is None or name in takes})
            for part, takes in zip(self.parts, self._takes, strict=True)
        ]

    def _sum(self, values: list[Tensor]) -> Tensor:
        for part, value in zip(self.parts, values, strict=True):
            if value.shape != values[0].shape:  # adding would stretch the smaller one without a word
                raise InputError(
                    f"{_name(part)} gives a loss of shape {tuple(value.shape)}, {_name(self.parts[0])} one of shape "
                    f"{tuple(values[0].shape)}: the parts of one loss must be reduced alike"
                )
        total, *others = (w * value if w != 1 else value for w, value in zip(self.weights, values, strict=True))
        for value in others:
            total = total + value
        return total

    def _active(self, input: Tensor, target: Tensor, calls: list[tuple[nn.Module, dict[str, Any]]]) -> Tensor:
        """Of all entries that count, the share where at least one penalty acts."""
        ours = [(weight, cast("Loss", part), more) for weight, (part, more) in zip(self.weights, calls, strict=True)
                if isinstance(part, Composable)]  # fmt: skip
        first = ours[0][1]
        rows = arrange(input, target, first.dim)
        kept = (first.row_weight(rows) != 0).sum() * rows.z.shape[1]
        acts = torch.zeros_like(input, dtype=torch.bool)
        for weight, part, more in ours:
            acts |= (part.smoothing(input, target, **more).C != 0) & (weight != 0)
        return acts.sum() / kept.clamp(min=1)


class _Function(nn.Module):
    """A plain function as a part."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor, **side: Any) -> Tensor:
        return self.function(*tensors, **side)

    def __repr__(self) -> str:
        return _name(self)


def _terms_of(thing: Any) -> list[Term]:
    if isinstance(thing, Composed):
        return [Term(weight, part) for weight, part in zip(thing.weights, thing.parts, strict=True)]
    if isinstance(thing, type):
        raise KnobError(f"{thing.__name__} is a class: add an instance, {thing.__name__}()")
    if not callable(thing):
        raise KnobError(f"a loss and {thing!r} cannot be added: a part must be a loss, a module or a function")
    return [Term(1.0, thing if isinstance(thing, nn.Module) else _Function(thing))]


def _added(left: list[Term], right: list[Term]) -> Composed:
    """The sum of two sums, unless it could not mean what it says."""
    _agree([cast("Loss", part) for _, part in left + right if isinstance(part, Composable)])
    fits, more = ([term for term in terms if _fits_labels(term.part)] for terms in (left, right))
    total = sum(abs(term.weight) for term in fits + more)  # one taken off another would leave none
    if fits and more and total > 1 + SLACK:
        raise KnobError(_counted_twice([term.part for term in fits], [term.part for term in more], total))
    return Composed(left + right)


def _counted_twice(left: list[nn.Module], right: list[nn.Module], total: float) -> str:
    names = [" + ".join(map(_name, parts)) for parts in (left, right)]
    found = f"{' + '.join(names)} would count cross-entropy {total:g} times, since both sides fit the labels"
    if not all(isinstance(part, Composable) for part in right):
        return f"{found}: leave {names[1]} out"
    first, second = (" + ".join(f"{_name(part)}(...)" for part in parts) for parts in (left, right))
    alone = " + ".join(f"{_name(part)}(...).penalty_only()" for part in right)
    return f"{found}: write {first} + {alone}, or weights that add up to 1, as in 0.5 * ({first}) + 0.5 * ({second})"


def _agree(ours: list["Loss"]) -> None:
    for part in ours[1:]:
        for name in SHARED:
            if (mine := getattr(ours[0], name)) != (other := getattr(part, name)):
                raise KnobError(
                    f"{_name(ours[0])} has {name}={mine!r} and {_name(part)} has {name}={other!r}: the parts of one "
                    "loss must agree, build them with the same"
                )


def _fits_labels(part: nn.Module) -> bool:
    """Whether it holds cross-entropy, or something in its place."""
    return isinstance(part, (nn.CrossEntropyLoss, nn.NLLLoss)) or getattr(part, "fits_labels", False) is True


def _keywords(part: nn.Module) -> frozenset[str] | None:
    """What a part can be given besides input and target; None if that is anything."""
    if isinstance(part, Composable):
        return frozenset(["normalizer", *side_of(type(part))])
    try:
        called = part.function if isinstance(part, _Function) else part.forward
        parameters = list(inspect.signature(called).parameters.values())
    except ValueError:  # written in C
        return frozenset()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters[2:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


def _told(part: nn.Module, input: Tensor, target: Tensor, more: dict[str, Any]) -> dict[str, Tensor]:
    if isinstance(part, Composable):
        return cast("Loss", part).terms(input, target, **more)
    value = part(input, target, **more)
    return {"loss": value, "ce": value if _fits_labels(part) else torch.zeros_like(value)}


def _name(part: nn.Module) -> str:
    if isinstance(part, _Function):
        name = getattr(part.function, "__name__", type(part.function).__name__)
        return "function" if name == "<lambda>" else name
    return type(part).__name__


def _free(name: str, taken: Container[str]) -> str:
    """The name, numbered if it is taken."""
    numbered = (name if number == 1 else f"{name} {number}" for number in count(1))
    return next(candidate for candidate in numbered if candidate not in taken)
