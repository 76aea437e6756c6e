"""The contract of a train-time method, and all that is common to them: the only file a contributor must read.

A method is one class with knobs, a card, its limits and two verbs on canonical tensors (z: (N, C) or (N, C, M) in
float32 or wider, y: labels (N,) or (N, M), or probabilities shaped like z):

    loss(z, y)    one number a row
    shift(z, y)   how far the label that it secretly trains toward lies from the given one: softmax - one_hot - dloss/dz

A method that looks beyond its row, at neighbouring labels, an image or the rest of the batch, also has `context`; what
that returns is handed to both verbs behind y. One whose card says `coupled` measures the batch as a whole: its verbs
also get the weight of every row, before any context; the weighted mean of its rows is the loss, and softmax - one_hot -
shift, times weight over total weight, the gradient of that mean.
"""

from collections.abc import Callable, Hashable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from confide.core import fused, lens
from confide.core.compiler import compiled, pays, traced
from confide.core.errors import InputError, KnobError
from confide.core.fused import Context
from confide.core.knobs import knob, knobs_of
from confide.core.rows import Kept, Rows, arrange, clean, weight_of
from confide.core.simplex import cross_entropy, one_hot
from confide.core.validate import check_values, check_weight, divisor_of
from confide.losses.card import Card as Card
from confide.losses.compose import Composable
from confide.losses.declared import check_declared, side_of, signature_of

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Only type checkers need the real one."""
        return lambda cls: cls


@dataclass_transform(kw_only_default=True, field_specifiers=(knob,))
class _Typed(Composable):
    """Tells type checkers that knobs are keyword arguments; does nothing."""


class Loss(_Typed):
    """A drop-in for `nn.CrossEntropyLoss`: `criterion(input, target)`, with torch's own names for the options.

    Besides its own knobs every loss takes these, all by keyword:

    weight: one number a class; multiplies the rows of that class.
    ignore_index: rows with this label are removed, as are soft rows of zeros.
    reduction: "mean" (weighted sum over kept weight), "sum" or "none".
    dim: the class axis; -1 for language models.
    validate: check labels and logits on the "first" batch (one host sync), "always", or "off".
    fused: value and gradient in one pass. "auto" compiles it where that pays, True always; False leaves the gradient
        to autograd, which second derivatives and forward-mode derivatives need.
    """

    card: ClassVar[Card]
    limits: ClassVar[tuple[tuple[dict[str, Any], nn.Module], ...]]  # settings, and the loss that they give
    loss: ClassVar[Callable[..., Tensor]]  # (z, y, *context): one number a row
    shift: ClassVar[Callable[..., Tensor]]  # (z, y, *context): softmax - one_hot - dloss/dz, in closed form

    _aliases: ClassVar[dict[str, str]] = {}
    _side: ClassVar[tuple[str, ...]] = ()
    _compile_key: Hashable = None

    if TYPE_CHECKING:  # a buffer at run time
        weight: Tensor | None = None
    ignore_index: int = knob(default=-100, doc="label of rows to remove")
    reduction: str = knob(default="mean", choices=("mean", "sum", "none"), doc="how rows become one number")
    dim: int = knob(default=1, doc="class axis")
    validate: str = knob(default="first", choices=("first", "always", "off"), doc="when labels and logits are checked")
    fused: str | bool = knob(default="auto", choices=("auto", True, False), doc="value and gradient in one pass")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        check_declared(cls)
        cls._aliases = {k.keyword: k.attribute for k in knobs_of(cls).values()}
        cls._side = side_of(cls)
        cls.__signature__ = signature_of(knobs_of(cls) | knobs_of(Loss))  # type: ignore[attr-defined]

    def __init__(self, *, weight: Tensor | None = None, **settings: Any) -> None:
        super().__init__()
        knobs = knobs_of(type(self)) | knobs_of(Loss)
        if unknown := sorted(settings.keys() - knobs.keys()):
            raise KnobError(
                f"{type(self).__name__} has no {', '.join(unknown)}; it takes {', '.join(knobs)} and weight"
            )
        for name, k in knobs.items():
            setattr(self, k.attribute, settings.get(name, k.default))
        self.register_buffer("weight", None)
        self.weight = weight
        self._batches = [0]  # in a list, since setting an attribute of a module is slow
        self.__post_init__()

    def __post_init__(self) -> None:
        """Where a method with a state makes its buffers and modules; the knobs are set by then."""

    def __setattr__(self, name: str, value: Any) -> None:
        # A knob can be set by its name as an argument, too, where its attribute has another one.
        if name == "weight":
            value = check_weight(value)
        if name == "reduction" and value == "none" and self.coupled:
            raise KnobError(
                f"reduction='none' is not possible: {type(self).__name__} measures the batch as a whole, so that its "
                "rows have no losses of their own; use 'mean' or 'sum'"
            )
        super().__setattr__(self._aliases.get(name, name), value)
        self.__dict__["_compile_key"] = None

    @property
    def traits(self) -> Card:
        """The card, where a knob changes what it says."""
        return self.card

    @property
    def compile_key(self) -> Hashable:
        """What tells apart the functions that are compiled for it. Other knobs may vary within one."""
        if self._compile_key is None:
            choices = [getattr(self, k.attribute) for k in knobs_of(type(self)).values() if k.choices]
            options = (self.fits_labels, self.reduction, self.ignore_index, self.weight is None)
            self.__dict__["_compile_key"] = (type(self), *options, *choices)
        return self._compile_key

    @property
    def coupled(self) -> bool:
        """Whether the loss of a row depends on the other rows."""
        return self.traits.coupled

    @classmethod
    def example(cls, **settings: Any) -> "Self":
        """A small one for tests and tables; methods that cannot be built from knobs alone say here what they need."""
        return cls(**settings)

    def example_side(self, shape: tuple[int, ...]) -> dict[str, Tensor]:
        """What `forward` must be told beside an index target of this shape, for tests."""
        return {}

    def context(self, rows: Rows) -> Context:
        """What the loss of a row needs to know beyond that row: tensors shaped like z or y, finite, without gradient.

        A coupled method may return any tensors. Overriding methods add keywords of `forward` as they need them.
        """
        return ()

    @property
    def checking(self) -> bool:
        """Whether the values of this batch are to be checked, at the price of a host sync."""
        due = self.validate == "always" or (self.validate == "first" and not self._batches[0])
        return due and not traced()

    def row_weight(self, rows: Rows) -> Tensor:
        """What each row counts for, shaped like an index target: 0 if ignored. For the context of coupled methods."""
        return weight_of(rows.y, self.ignore_index, self.weight, torch.promote_types(rows.z.dtype, torch.float32))

    def forward(
        self, input: Tensor, target: Tensor, *, normalizer: float | Tensor | None = None, **side: Any
    ) -> Tensor:
        """The reduced loss.

        `normalizer` replaces the mean's denominator. With gradient accumulation pass the number (or weight) of kept
        labels in the whole batch; under DDP, which averages gradients, their total over all ranks divided by the
        number of ranks. The gradient is then exactly that of one big batch. `side` goes to the method's `context`.
        """
        rows = arrange(input, target, self.dim)
        divisor = None if normalizer is None else divisor_of(normalizer, self.reduction, rows.z)
        if traced():
            result = fused.value(self, rows.z, rows.y, divisor, self._context(rows, side))
        else:
            result = self._run(rows, divisor, side)
        return result.reshape(rows.shape) if self.reduction == "none" else result

    def prepare(self, input: Tensor, target: Tensor, **side: Any) -> tuple[Rows, Kept, Context]:
        """A checked batch as the verbs see it: its layout, its rows with ignored ones made safe, what is beyond y."""
        rows = arrange(input, target, self.dim)
        self._check(rows)
        kept = clean(rows.z, rows.y, self.ignore_index, self.weight)
        return rows, kept, fused.beyond(self, kept, self._context(rows, side))

    @torch.no_grad()
    def terms(self, input: Tensor, target: Tensor, **side: Any) -> dict[str, Tensor]:
        """For logging: the loss, its cross-entropy and penalty, and the share of entries where the penalty acts."""
        rows, kept, context = self.prepare(input, target, **side)
        denominator = fused.denominator_of(self, kept, None)
        loss, ce = (
            fused.reduce(self, kept, row, denominator).reshape(rows.shape if self.reduction == "none" else ())
            for row in (fused.losses_of(self, kept, context), cross_entropy(kept.z, kept.y) * self.fits_labels)
        )
        keep = (kept.mass != 0).unsqueeze(1)
        acts = (self.shift(kept.z, kept.y, *context) != 0) & keep
        active = acts.sum() / (keep.sum() * kept.z.shape[1]).clamp(min=1)
        return {"loss": loss, "ce": ce, "penalty": loss - ce, "active": active}

    @torch.no_grad()
    def smoothing(self, input: Tensor, target: Tensor, **side: Any) -> lens.Smoothing:
        """How much each label is softened and where: f and C of the ACLS paper's Eq. 8, shaped like `input`."""
        rows, kept, context = self.prepare(input, target, **side)
        pair = lens.smoothing(self.shift(kept.z, kept.y, *context), kept.z)
        return lens.Smoothing(*(rows.restore(x * (kept.mass != 0).unsqueeze(1)) for x in pair))

    @torch.no_grad()
    def target(self, input: Tensor, target: Tensor, **side: Any) -> Tensor:
        """The label toward which the method effectively trains, shaped like `input`; 0 in ignored rows."""
        rows, kept, context = self.prepare(input, target, **side)
        label = one_hot(kept.z, kept.y) + self.shift(kept.z, kept.y, *context)
        return rows.restore(label * (kept.mass != 0).unsqueeze(1))

    def extra_repr(self) -> str:
        """The knobs, and the options that differ from their defaults."""
        own = [f"{name}={getattr(self, k.attribute)!r}" for name, k in knobs_of(type(self)).items()]
        options = [(name, getattr(self, name), k.default) for name, k in knobs_of(Loss).items()]
        changed = [f"{name}={value!r}" for name, value, default in options if value != default]
        return ", ".join(own + changed + ([] if self.fits_labels else ["without cross-entropy"]))

    def _run(self, rows: Rows, divisor: Tensor | None, side: dict[str, Any]) -> Tensor:
        """Pick the cheapest way that does what is needed."""
        z, y = rows.z, rows.y
        self._check(rows)
        self._batches[0] += 1
        if self.fused is False or y.requires_grad:
            return fused.value(self, z, y, divisor, self._context(rows, side))
        compiles = self.fused is True or pays(z, self._batches[0])

        def ready(run: fused.Run) -> fused.Run:
            return compiled(run, self, z, y, divisor) if compiles else run

        if z.requires_grad and torch.is_grad_enabled():
            return fused.one_pass(self, z, y, divisor, partial(self._context, rows, side), ready)
        return ready(fused.value)(self, z, y, divisor, self._context(rows, side))  # type: ignore[no-any-return]

    def _context(self, rows: Rows, side: dict[str, Any]) -> Context:
        if not side and type(self).context is Loss.context:  # the usual case, without the cost of no_grad
            return ()
        if unknown := [name for name in side if name not in self._side]:
            takes = ", ".join(f"{name}=" for name in ("normalizer", *self._side))
            raise TypeError(f"{type(self).__name__} takes no {unknown[0]}=; besides input and target it takes {takes}")
        with torch.no_grad() if torch.is_grad_enabled() else nullcontext():
            return self.context(rows, **side)

    def _check(self, rows: Rows) -> None:
        weight = self._buffers["weight"]  # not by its name, under which a module looks in its buffers last
        if weight is not None and len(weight) != rows.z.shape[1]:
            raise InputError(f"weight has {len(weight)} numbers for {rows.z.shape[1]} classes")
        if self.checking and not rows.z.is_meta:
            check_values(rows, self.ignore_index, self.traits.masked)
