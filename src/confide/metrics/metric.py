"""The contract of every metric: `observe` turns rows into sums, `value` turns sums into a number.

Layout, ignored rows, checks, streaming, merging, processes and files are done here, once for all of them.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypedDict, TypeVar

import torch
from torch import Tensor

from confide.core.errors import InputError, KnobError
from confide.core.groups import Group
from confide.core.stats import Stats
from confide.metrics import gather
from confide.metrics.estimate import Bin, Estimate, Span, worded
from confide.metrics.items import Items
from confide.metrics.layout import Door, Side, items
from confide.metrics.regions import region_mask
from confide.metrics.units import Units, fresh_rows, ranges

if TYPE_CHECKING:
    from typing_extensions import Self

S = TypeVar("S", bound=Stats)
INPUTS = ("logits", "probs")


class Options(TypedDict, total=False):
    """The keywords that every metric takes beside its own."""

    inputs: Literal["logits", "probs"]
    ignore_index: int | None
    dim: int
    region: str
    classes: int | None


class Metric(ABC, Generic[S]):
    """A number that streams: `update` with batches, `merge` with other workers, `compute` or `estimate` at any time.

    inputs: "logits", also when they look like probabilities, or "probs", which are checked; never guessed.
    ignore_index: rows with this label count for nothing, whatever their logits.
    dim: the class axis of `(C,)`, `(N, C)` or `(N, C, d1, ..., dk)`.
    region: "all", "foreground" (labels but 0), "boundary:WIDTH" in pixels, or "class:K".
    classes: their number, only needed where a process may meet `sync` without having seen data.
    """

    definition: str
    goal: Literal["low", "high", "none"] = "low"  # which way is better
    classwise: ClassVar[bool] = False  # whether the sums have one entry a class
    exempt: ClassVar[dict[str, str]] = {}  # checks of confide.testing that cannot hold, and why
    whole: ClassVar[bool] = False  # whether it looks at whole images, and not at rows

    def __init__(
        self,
        *,
        inputs: Literal["logits", "probs"] = "logits",
        ignore_index: int | None = -100,
        dim: int = 1,
        region: str = "all",
        classes: int | None = None,
    ) -> None:
        if inputs not in INPUTS:
            raise KnobError(f"inputs={inputs!r} is unknown; pass 'logits' or 'probs'")
        self.inputs, self.ignore_index, self.dim, self.region, self.classes = inputs, ignore_index, dim, region, classes
        self._stats: S | None = None
        self._clusters: dict[int, S] = {}
        self._seen: set[int | str] = set()
        self.classes_seen = 0
        self._door = Door(inputs == "probs", ignore_index, dim, region_mask(region, ignore_index))

    def __init_subclass__(cls) -> None:
        if not getattr(cls, "definition", None):
            raise TypeError(f"{cls.__name__} needs a `definition`: one sentence and the formula")

    @abstractmethod
    def observe(self, items: Items) -> S:
        """Sums over rows. Those that do not count (`~items.keep`) must add nothing. Never wait for the device."""

    @abstractmethod
    def value(self, stats: S) -> float:
        """The number that these sums amount to; NaN when they are empty."""

    @abstractmethod
    def blank(self, classes: int) -> S:
        """The sums over no rows."""

    @abstractmethod
    def span(self, stats: S, clusters: list[S]) -> Span:
        """The interval, and what chance would show; from brief sums of each cluster of units, if there are any."""

    def brief(self, stats: S) -> S:
        """The sums that a cluster keeps: as small as the interval allows."""
        return stats

    def settings(self) -> dict[str, Any]:
        """The constructor's keywords. Metrics merge only when these agree."""
        names = ("inputs", "ignore_index", "dim", "region", "classes")
        return {name: getattr(self, name) for name in names}

    @property
    def stats(self) -> S | None:
        """The sums so far, or None before the first update. They never change in place: safe to keep."""
        return self._stats

    def update(
        self,
        input: Tensor,
        target: Tensor,
        *,
        sample_weight: Tensor | None = None,
        unit: Any = None,
        valid: Tensor | None = None,
        sample_id: Any = None,
    ) -> None:
        """Add a batch. If it is refused, nothing of it has been added.

        Targets are class indices of any integer type, or class probabilities shaped like the input. The keywords hold
        one entry a row of the target, or one a sample: `sample_weight`, a bool `valid` to leave out padding, `unit`
        ids (image, patient) that the interval resamples as a whole, and `sample_id`, of which repeats are left out.
        """
        ids = None if sample_id is None else Units.of(sample_id)
        side = Side(sample_weight, fresh_rows(valid, ids, self._seen), None if unit is None else Units.of(unit))
        stats, clusters = self._measure(input, target, side)
        self._stats = stats if self._stats is None else self._stats + stats
        gather.add_clusters(self._clusters, clusters)
        self._seen |= set() if ids is None else set(ids.names)
        self.classes_seen = input.shape[self.dim if input.dim() > 1 else 0]

    def compute(self) -> float:
        return float("nan") if self._stats is None else self.value(self._stats)

    def estimate(self) -> Estimate:
        """The value with its 95 % interval, what a perfectly calibrated model would show, and a verdict in words."""
        stats = self._stats if self._stats is not None else self.blank(self.classes or 2)
        return self.assess(stats, [self._clusters[slot] for slot in sorted(self._clusters)])

    def assess(self, stats: S, clusters: list[S]) -> Estimate:
        """The same of any sums, and of brief sums of clusters of units, where there are units."""
        span = self.span(stats, clusters) if stats.n() else Span()
        return worded(type(self).__name__, self.value(stats), stats.n(), span, self.definition)

    def bins(self) -> list[Bin]:
        """The bars of the reliability diagram, where the metric has some."""
        raise InputError(f"{type(self).__name__} has no bins; ECE and AdaptiveECE have")

    def reset(self) -> None:
        self._stats, self._clusters, self._seen, self.classes_seen = None, {}, set(), 0

    def __call__(self, input: Tensor, target: Tensor, **side: Any) -> float:
        """The metric of this one batch. What `update` has gathered is neither used nor touched."""
        once = self.copy(empty=True)
        once.update(input, target, **side)
        return once.compute()

    def copy(self, *, empty: bool = False) -> Self:
        """Another one with the same settings, and the same sums unless `empty`."""
        twin = copy.copy(self)
        twin._clusters, twin._seen = dict(self._clusters), set(self._seen)
        if empty:
            twin.reset()
        return twin

    def merge(self, other: Self) -> Self:
        """Take in what another worker has gathered, and return self."""
        gather.check_kin(self, other)
        gather.check_apart(self._seen, other._seen)
        if other._stats is not None:
            self._stats = other._stats if self._stats is None else self._stats + other._stats
        gather.add_clusters(self._clusters, other._clusters)
        self._seen |= other._seen
        self.classes_seen = max(self.classes_seen, other.classes_seen)
        return self

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Metric):
            return NotImplemented
        return self.copy().merge(other)

    def sync(self, group: Group = None) -> Self:
        """A metric with the sums of all processes; this one is left as it is, so that no sum is ever counted twice.

        One all_reduce of an int64 tensor whose size does not depend on the data, over `group` or all processes. All
        must call it, also those without data. Where the sums have an entry a class and `classes=` was not given, a
        second all_reduce of one number finds it. Repeats of a `sample_id` are found within a process only: between
        processes leave a sampler's padding out with `valid=`.
        """
        group = True if group is None else group
        twin = self.copy()
        blank = self.blank(gather.class_number(self, group))
        twin._stats, twin._clusters = gather.everywhere(self._stats, self._clusters, blank, self.brief(blank), group)
        return twin

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors, numbers and strings: what `torch.save` writes and `weights_only=True` reads."""
        return {
            "settings": {"metric": type(self).__name__, **self.settings()},
            "stats": None if self._stats is None else self._stats.tensors(),
            "clusters": {str(slot): part.tensors() for slot, part in self._clusters.items()},
            "seen": sorted(self._seen, key=repr),
            "classes_seen": self.classes_seen,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where another one with the same settings stopped."""
        gather.check_settings({"metric": type(self).__name__, **self.settings()}, state["settings"])
        blank = self.blank(2)
        self._stats = None if state["stats"] is None else blank.filled(state["stats"])
        self._clusters = {int(slot): blank.filled(part) for slot, part in state["clusters"].items()}
        self._seen, self.classes_seen = set(state["seen"]), state["classes_seen"]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.settings().items())})"

    @torch.no_grad()
    def _measure(self, input: Tensor, target: Tensor, side: Side) -> tuple[S, dict[int, S]]:
        """The sums over a batch, and those of every cluster in it."""
        total: S | None = None
        clusters: dict[int, S] = {}
        slots = None if side.unit is None else side.unit.slots()
        for piece, codes in items(input, target, self._door, side):
            stats = self.observe(piece)
            total = stats if total is None else total + stats
            if codes is not None and slots is not None:
                own = {slot: self.brief(self.observe(piece.take(rows))) for slot, rows in ranges(slots[codes.cpu()])}
                gather.add_clusters(clusters, own)
        assert total is not None  # there is always a piece, if an empty one
        return total, clusters
