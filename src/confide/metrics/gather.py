"""What workers and processes gathered becomes one: merging, and one all_reduce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import distributed

from confide.core.errors import InputError
from confide.core.groups import Group, alone, largest, summed
from confide.core.stats import Stats
from confide.metrics.units import SLOTS

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from confide.metrics.metric import Metric

K = TypeVar("K")
S = TypeVar("S", bound=Stats)


def add_clusters(mine: dict[K, S], theirs: Mapping[K, S]) -> None:
    """Add entry by entry, in place."""
    for slot, stats in theirs.items():
        mine[slot] = mine[slot] + stats if slot in mine else stats


def check_kin(mine: Metric[Any], other: object) -> None:
    """Only metrics of one kind and with the same settings merge."""
    if type(other) is not type(mine):
        raise TypeError(f"cannot merge {type(mine).__name__} with {type(other).__name__}")
    check_settings(mine.settings(), other.settings())


def check_settings(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Name the first setting that differs."""
    for name in mine:
        if mine[name] != theirs.get(name):
            raise InputError(f"cannot merge: {name} is {mine[name]!r} here and {theirs.get(name)!r} there")


def check_apart(mine: set[int | str], theirs: set[int | str]) -> None:
    """Samples that both have seen are in both sums already and cannot be taken out."""
    if both := sorted(mine & theirs, key=repr):
        raise InputError(
            f"cannot merge: {len(both):,} sample ids occur on both sides (first {both[0]!r}), so that their rows would "
            "count twice; leave the padding of each worker out with valid="
        )


def class_number(metric: Metric[Any], group: Group) -> int:
    """The number of classes: given, or else, where it matters, the largest that any process has seen."""
    if metric.classes is not None or not metric.classwise:
        return metric.classes or 2
    found = torch.tensor(metric.classes_seen)
    return int(found if alone(group) else largest(found, group))


def everywhere(stats: S | None, clusters: Mapping[int, S], blank: S, small: S, group: Group) -> tuple[S, dict[int, S]]:
    """The sums over all processes."""
    rank, world = (0, 1) if alone(group) else _place(group)
    stats = blank if stats is None else stats
    device = stats.device
    parts = [stats.pack(rank, world)]
    parts += [clusters.get(slot, small).to(device).pack(world=0) for slot in range(SLOTS)]
    vector = torch.cat(parts)
    vector = vector if alone(group) else summed(vector, group)
    whole, *others = vector.split([len(part) for part in parts])
    slots = {slot: part for slot, part in enumerate(others) if bool(part.any())}
    return blank.unpack(whole, world), {slot: small.unpack(part, 0) for slot, part in slots.items()}


def _place(group: Group) -> tuple[int, int]:
    handle = None if group is True else cast("ProcessGroup", group)
    return distributed.get_rank(handle), distributed.get_world_size(handle)
