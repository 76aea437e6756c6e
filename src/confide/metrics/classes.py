"""Sums of every class: bins of its probabilities, and how often it is label, predicted, both."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from confide.core.bins import EDGE, Histogram, cell_of_scaled, tally_of
from confide.core.stats import ONE, Fixed, exactly, scatter, to_units
from confide.core.sums import Tally
from confide.metrics.items import Items

Parts = tuple[Fixed, Fixed, Fixed]


def by_class(items: Items, bins: int) -> Histogram:
    """For every class the bins of its probability, of all rows, with [y = k] as what is to be predicted."""
    chosen = _kept(items)
    classes = chosen.classes
    if chosen.weight is not None or chosen.soft is not None:
        count, parts, square = _weighted(chosen, *_cells(chosen, bins), classes * bins)
    else:
        few = chosen.axis == 0 or bins == 1 or chosen.x.device.type != "cpu"
        count, total = tally_of(*_cells(chosen, bins), classes * bins) if few else _mostly_low(chosen, bins)
        own = exactly(chosen.at(chosen.p, chosen.y)) * ONE
        place = chosen.y * bins + cell_of_scaled(own.round_(), bins)
        hits = scatter(torch.ones_like(place), place, classes * bins)
        parts = (Fixed.of_counts(count), Fixed.of_counts(hits), total)
        square = Fixed.of_counts(torch.tensor(len(chosen), device=count.device))
    mass, hit, confidence = (part.reshape(classes, bins) for part in parts)
    return Histogram(count.reshape(classes, bins), mass, hit, confidence, square)


def _cells(items: Items, bins: int) -> tuple[Tensor, Tensor]:
    """Of every probability the cell, counted through all classes, and its units."""
    units = (exactly(items.p) * ONE).round_()
    index = cell_of_scaled(units, bins)
    index += (torch.arange(items.classes, device=index.device) * bins).unsqueeze(1 - items.axis)
    return index.reshape(-1), units.reshape(-1)


def _mostly_low(items: Items, bins: int) -> tuple[Tensor, Fixed]:
    """The same tally where most probabilities lie in the first bin: what is not in the others is there."""
    classes, size = items.classes, items.classes * bins
    units = (items.p * float(ONE)).round_()
    place = torch.from_numpy(
        np.flatnonzero((units > _below(ONE // bins + EDGE, units.dtype)).numpy())
    )  # torch's is slower
    high, k = exactly(units.reshape(-1)[place]), place % classes
    count, total = tally_of(k * bins + cell_of_scaled(high, bins), high, size)
    first = torch.arange(classes) * bins
    every = torch.from_numpy(np.add.reduce(units.numpy(), dtype=np.float64)).to(torch.int64)  # below 2**53: exact
    above = total.reshape(classes, bins)
    rest = every - (above.whole * ONE + above.fraction).sum(1)
    count[first] += len(items) - count.reshape(classes, bins).sum(1)
    low = torch.zeros(size, dtype=torch.int64).index_add_(0, first, rest)
    return count, total + Fixed.carried(torch.zeros_like(low), low)


def _below(edge: int, dtype: torch.dtype) -> float:
    """The largest number of this type that is not above the edge: greater than it means greater than the edge."""
    kind = np.float32 if dtype == torch.float32 else np.float64
    near = kind(edge)
    return float(near if int(near) <= edge else np.nextafter(near, kind(0)))


def _weighted(items: Items, flat: Tensor, units: Tensor, size: int) -> tuple[Tensor, Parts, Fixed]:
    w = torch.ones_like(exactly(items.confidence)) if items.weight is None else exactly(items.weight)
    target = items.target()
    w = w.unsqueeze(items.axis).expand_as(target)
    mass, hits, confidence = (
        Fixed.spread(to_units(x).reshape(-1), flat, size) for x in (w, w * target, w * exactly(items.p))
    )
    row = w.select(items.axis, 0)
    return scatter(torch.ones_like(flat), flat, size), (mass, hits, confidence), Fixed.total(row * row)


def tally(items: Items) -> Tally:
    """How much of the weight has each class as label, as prediction, as both."""
    chosen = _kept(items)
    classes, guess = chosen.classes, chosen.guess
    count = torch.tensor(len(chosen), device=guess.device)
    if chosen.weight is None and chosen.soft is None:
        ones = torch.ones_like(guess)
        both = scatter((guess == chosen.y).long(), guess, classes)
        counts = (scatter(ones, chosen.y, classes), scatter(ones, guess, classes), both)
        return Tally(count, *(Fixed.of_counts(part) for part in counts))
    w = torch.ones_like(exactly(chosen.confidence)) if chosen.weight is None else exactly(chosen.weight)
    label = to_units(chosen.target() * w.unsqueeze(chosen.axis))
    whole = Fixed.carried((label >> 32).sum(1 - chosen.axis), (label & (ONE - 1)).sum(1 - chosen.axis))
    own = chosen.at(label, guess)
    return Tally(count, whole, Fixed.spread(to_units(w), guess, classes), Fixed.spread(own, guess, classes))


def _kept(items: Items) -> Items:
    """The rows that count."""
    if bool(items.keep.all()):
        return items
    return items.take(items.keep.nonzero().squeeze(1))
