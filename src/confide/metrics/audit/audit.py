"""Audit: one pass over the data, then every metric with its interval, per class, per group, per unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, distributed

from confide.core.bins import check_bins
from confide.core.errors import InputError, KnobError
from confide.core.groups import Group, alone
from confide.metrics import gather
from confide.metrics.audit import file
from confide.metrics.audit.result import result_of
from confide.metrics.audit.sums import Part, Whole
from confide.metrics.items import Items
from confide.metrics.layout import Door, Side, items
from confide.metrics.metric import INPUTS
from confide.metrics.regions import region_mask
from confide.metrics.units import Units, fresh_rows, ranges, slot_of

if TYPE_CHECKING:
    from os import PathLike

    from typing_extensions import Self

Name = int | str
Place = tuple[str, Name]  # a group column and a value in it


class Audit:
    """Collects everything that one pass can give; `result()` is plain data, ready for JSON.

    audit = Audit(classes=19, ignore_index=255)
    for logits, target, patient, site in loader:
        audit.update(logits, target, unit=patient, groups={"site": site})
    audit.result()

    Its sums have a fixed size, but for about a kilobyte for every unit and group. They merge with `+` and `merge`, over
    processes with `sync`, over files with `save` and `load`; nothing is lost on the way, so that everything can be
    had from the merged file, other numbers of bins included. Other options are those of `Metric`.

    `sources` is for the caller: a line of plain data for each file that the numbers came from, kept with them.
    """

    def __init__(
        self,
        classes: int,
        *,
        bins: int = 15,
        inputs: Literal["logits", "probs"] = "logits",
        ignore_index: int | None = -100,
        dim: int = 1,
        region: str = "all",
    ) -> None:
        if inputs not in INPUTS:
            raise KnobError(f"inputs={inputs!r} is unknown; pass 'logits' or 'probs'")
        self.classes, self.bins, self.inputs, self.region = classes, check_bins(bins), inputs, region
        self.ignore_index, self.dim = ignore_index, dim
        self._door = Door(inputs == "probs", ignore_index, dim, region_mask(region, ignore_index))
        self.reset()

    def reset(self) -> None:
        """Forget all data."""
        self.sums = Whole.blank(self.classes, self.bins)
        self.clusters: dict[int, Whole] = {}
        self.units: dict[Name, Part] = {}
        self.groups: dict[Place, Part] = {}
        self.group_clusters: dict[tuple[Place, int], Part] = {}
        self.shards: set[str] = set()
        self.sources: list[dict[str, Any]] = []
        self.dense = False
        self._seen: set[Name] = set()

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments. Audits merge only when these agree."""
        names = ("classes", "bins", "inputs", "ignore_index", "dim", "region")
        return {name: getattr(self, name) for name in names}

    @torch.no_grad()
    def update(
        self,
        input: Tensor,
        target: Tensor,
        *,
        groups: Mapping[str, Any] | None = None,
        unit: Any = None,
        sample_weight: Tensor | None = None,
        valid: Tensor | None = None,
        sample_id: Any = None,
    ) -> None:
        """Add a batch, with the keywords of `Metric.update`; `groups` holds named columns of one entry a sample."""
        ids = None if sample_id is None else Units.of(sample_id)
        valid, units = fresh_rows(valid, ids, self._seen), None if unit is None else Units.of(unit)
        batch = self._empty()
        columns = {column: Units.of(values) for column, values in (groups or {}).items()}
        batch._add_pieces(input, target, Side(sample_weight, valid, units), columns)
        self._take_in(batch)
        self.dense |= target.dim() > (2 if target.is_floating_point() else 1)
        self._seen |= set() if ids is None else set(ids.names)

    def merge(self, other: Self) -> Self:
        """Take in what another worker or file has gathered, and return self."""
        if not isinstance(other, Audit):
            raise TypeError(f"cannot merge Audit with {type(other).__name__}")
        gather.check_settings(self.settings(), other.settings())
        gather.check_apart(self._seen, other._seen)
        if both := self.shards & other.shards:
            raise InputError(f"cannot merge: {len(both)} shard(s) are in both (first {min(both)[:12]}); give each once")
        self._take_in(other)
        self.dense |= other.dense
        self._seen |= other._seen
        self.shards |= other.shards
        self.sources = [*self.sources, *other.sources]
        return self

    def __add__(self, other: Self) -> Self:
        return self._empty().merge(self).merge(other)

    def sync(self, group: Group = None) -> Self:
        """An audit with the sums of all processes; this one is left as it is.

        One all_reduce for the sums of fixed size; units and groups, which have names, are gathered beside it.
        """
        group, twin = True if group is None else group, self._empty()
        blank = Whole.blank(self.classes, self.bins)
        twin.sums, twin.clusters = gather.everywhere(self.sums, self.clusters, blank, blank.brief(), group)
        for tables in _gathered((self.units, self.groups, self.group_clusters, self.dense), group):
            gather.add_clusters(twin.units, tables[0])
            gather.add_clusters(twin.groups, tables[1])
            gather.add_clusters(twin.group_clusters, tables[2])
            twin.dense |= tables[3]
        return twin

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to an npz file; without pickle."""
        file.save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        return file.load(cls, path)

    def result(self) -> dict[str, Any]:
        """Plain data, ready for JSON: see `confide.metrics.audit.result` for its shape."""
        return result_of(self)

    def _empty(self) -> Self:
        return type(self)(**self.settings())

    def _take_in(self, other: Audit) -> None:
        self.sums = self.sums.to(other.sums.device) + other.sums
        gather.add_clusters(self.clusters, other.clusters)
        gather.add_clusters(self.units, other.units)
        gather.add_clusters(self.groups, other.groups)
        gather.add_clusters(self.group_clusters, other.group_clusters)

    def _add_pieces(self, input: Tensor, target: Tensor, side: Side, columns: Mapping[str, Units]) -> None:
        """Add up the rows of each unit and group apart, so that every row is read once."""
        marks = [*([] if side.unit is None else [side.unit]), *columns.values()]
        names = _crossed(marks)
        for piece, codes in items(input, target, self._door, Side(side.sample_weight, side.valid, names)):
            if piece.classes != self.classes:
                raise InputError(f"Audit(classes={self.classes}) was given {piece.classes} classes")
            for name, own in _split(piece, codes, names, self.bins):
                self.sums = self.sums.to(piece.x.device) + own
                self._add_part(own, name, side.unit is not None, columns)

    def _add_part(self, own: Whole, name: tuple[Name, ...], unit: bool, columns: Iterable[str]) -> None:
        """File sums under their unit, which comes first in the name, and under their groups."""
        part, known = own.part(self.bins), unit and own.top.n() > 0
        if known:
            gather.add_clusters(self.units, {name[0]: part})
            gather.add_clusters(self.clusters, {slot_of(name[0]): own.brief()})
        for place in zip(columns, name[1:] if unit else name, strict=True):
            gather.add_clusters(self.groups, {place: part})
            if known:
                gather.add_clusters(self.group_clusters, {(place, slot_of(name[0])): part})


def _crossed(marks: Sequence[Units]) -> Units | None:
    """Every combination of names that occurs, as tuples."""
    if not marks:
        return None
    found = Units(tuple((name,) for name in marks[0].names), marks[0].codes)
    for other in marks[1:]:
        found = found.crossed(other)
    return found


def _split(piece: Items, codes: Tensor | None, names: Units | None, bins: int) -> Iterator[tuple[Any, Whole]]:
    """The sums of each combination of names that has rows in a piece."""
    if codes is None or names is None:
        yield (), Whole.of(piece, bins)
        return
    for code, rows in ranges(codes):
        yield names.names[code], Whole.of(piece if len(rows) == len(piece) else piece.take(rows), bins)


def _gathered(tables: Any, group: Group) -> list[Any]:
    """Those of every process."""
    if alone(group):
        return [tables]
    handle = None if isinstance(group, bool) else group
    found: list[Any] = [None] * distributed.get_world_size(handle)
    distributed.all_gather_object(found, tables, group=handle)
    return found
