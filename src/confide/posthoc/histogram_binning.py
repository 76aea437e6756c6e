"""Histogram binning: the share of hits in each bin, for each class against the rest."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values, setting
from confide.posthoc.one_vs_rest import labels, missing


@dataclass(eq=False, kw_only=True)
class HistogramBinning(Calibrator):
    """In each class, the share of hits in the bin of p, normalised."""

    bins: int = setting(15, low=1, high=10_000, doc="how many bins a class")
    strategy: str = setting("uniform", choices=("uniform", "quantile"), doc="bins of equal width, or of equal mass")
    card = Card(
        title="Histogram binning",
        cite="Zadrozny and Elkan, ICML 2001",
        formula="share of hits in the bin of p_k, normalised",
        when="as a baseline, or where a finite set of confidences is wanted",
        differs=(
            "An empty bin gives 0 in the released code of Kull et al. and its centre in netcal, as here; a bin of n "
            "rows claims no less than 1 / (n + 2), no more than 1 minus that. Bins are (a, b]."
        ),
        onnx=False,
    )

    edges_: Tensor = field(init=False, repr=False)
    value_: Tensor = field(init=False, repr=False)

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        p, hit = z.double().softmax(1).T.contiguous(), labels(z, y).T.contiguous()
        inner = torch.arange(1, self.bins, dtype=p.dtype, device=p.device) / self.bins
        edges = inner.expand(len(p), -1).contiguous()
        if self.strategy == "quantile":
            edges = p.sort(1).values[:, (inner * (p.shape[1] - 1)).long()].contiguous()
        where = torch.searchsorted(edges, p)
        empty = torch.zeros(len(p), self.bins, dtype=p.dtype, device=p.device)
        count = empty.scatter_add(1, where, torch.ones_like(p))
        hits = empty.scatter_add(1, where, hit)
        ends = (
            torch.cat((torch.zeros_like(edges[:, :1]), edges, torch.ones_like(edges[:, :1])), 1)
            if self.bins > 1
            else None
        )
        centre = torch.full_like(count, 0.5) if ends is None else (ends[:, 1:] + ends[:, :-1]) / 2
        least = 1 / (count + 2)
        value = torch.where(count > 0, torch.minimum(torch.maximum(hits / count, least), 1 - least), centre)
        return Learnt({"edges": edges, "value": value.clamp(1e-12, 1 - 1e-12)}, note=missing(y, z.shape[1]))

    def map(self, z: Tensor, values: Values) -> Tensor:
        where = torch.searchsorted(values["edges"].to(z.dtype), z.softmax(1).T.contiguous())
        return values["value"].to(z.dtype).gather(1, where).T.log()
