"""Sums of every class: bins of its probabilities, and how often it is label, predicted, both."""

from __future__ import annotations

import torch
from torch import Tensor

from confide.core.bins import Histogram, cell_of_scaled, tally_of
from confide.core.stats import ONE, Fixed, exactly, scatter, to_units
from confide.core.sums import Tally
from confide.metrics.items import Items

Parts = tuple[Fixed, Fixed, Fixed]


def by_class(items: Items, bins: int) -> Histogram:
    """For every class the bins of its probability, of all rows, with [y = k] as what is to be predicted."""
    chosen = _kept(items)
    classes, size = chosen.classes, chosen.classes * bins
    units = (exactly(chosen.p) * ONE).round_()
    index = cell_of_scaled(units, bins)
    index += (torch.arange(classes, device=index.device) * bins).unsqueeze(1 - chosen.axis)
    if chosen.weight is None and chosen.soft is None:
        count, total = tally_of(index.reshape(-1), units.reshape(-1), size)
        own = scatter(torch.ones_like(chosen.y), chosen.at(index, chosen.y), size)
        parts = (Fixed.of_counts(count), Fixed.of_counts(own), total)
        square = Fixed.of_counts(torch.tensor(len(chosen), device=count.device))
    else:
        count, parts, square = _weighted(chosen, index, units, size)
    mass, hits, confidence = (part.reshape(classes, bins) for part in parts)
    return Histogram(count.reshape(classes, bins), mass, hits, confidence, square)


def _weighted(items: Items, index: Tensor, units: Tensor, size: int) -> tuple[Tensor, Parts, Fixed]:
    w = torch.ones_like(units[0] if items.axis == 0 else units[:, 0]) if items.weight is None else exactly(items.weight)
    w = w.unsqueeze(items.axis).expand_as(units)
    flat = index.reshape(-1)
    target = items.target()
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
