"""Which calibrator for these predictions: every one that suits, judged on rows that it did not see."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from confide.core.errors import CalibrationWarning, InputError, MissingExtra
from confide.metrics.accuracy import Accuracy
from confide.metrics.ece import ECE
from confide.posthoc import ALL, Calibrator, Temperature
from confide.posthoc.layout import MULTICLASS, SKIP, read, two

RESAMPLES, MOST = 1000, 20_000  # bootstrap; of more items the interval is the normal one
FOLDS = 5
NONE = "(none)"


@dataclass(frozen=True, eq=False)
class Data:
    """Logits and labels."""

    logits: Tensor
    labels: Tensor
    ignore_index: int = -100

    def take(self, rows: Tensor) -> Data:
        """Some of the items along the first axis."""
        return Data(self.logits[rows], self.labels[rows], self.ignore_index)


@dataclass(frozen=True)
class Row:
    """One line of the table: fractions and nats, on rows that the fit did not see."""

    method: str
    nll: float
    low: float  # 95 % interval of the NLL's difference to no calibration, over rows or images
    high: float
    brier: float
    ece: float
    accuracy: float
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """The table and what follows from it."""

    rows: tuple[Row, ...]
    skipped: tuple[tuple[str, str], ...]
    recommended: str
    reason: str
    verdict: str  # better, no detectable change, or worse
    judged_on: str
    leakage: bool = False


def compare(fit: Data, judge: Data | None, methods: Iterable[type[Calibrator]] = ALL) -> Report:
    """Fit on one split and judge on another; with one split only, each fold is judged by a fit on the others."""
    chosen, skipped = _suiting(fit, methods)
    base, y = judged(None, judge or _in_order(fit))
    raw = of_label(base, y)
    item = items(judge or _in_order(fit))
    rows, gains = [_row(NONE, base, y, (0.0, 0.0), 0.0, ())], {NONE: raw - raw}
    for kind in chosen:
        try:
            log_p, seconds, notes = _run(kind, fit, judge)
        except MissingExtra as error:
            skipped.append((kind.__name__, str(error)))
            continue
        gains[kind.__name__] = raw - of_label(log_p, y)  # positive where the NLL rises
        rows.append(_row(kind.__name__, log_p, y, interval(gains[kind.__name__], item), seconds, notes))
    where = f"{FOLDS} folds, each by a fit on the others" if judge is None else "the second file"
    leak = judge is not None and shared(fit, judge) >= 0.01
    recommended, reason = _recommend(rows, gains, item)
    best = next(row for row in rows if row.method == recommended)
    verdict = "better" if best.high < 0 else "worse" if best.low > 0 else "no detectable change"
    return Report(tuple(rows), tuple(skipped), recommended, reason, verdict, where, leak)


def judged(calibrator: Calibrator | None, data: Data) -> tuple[Tensor, Tensor]:
    """Log-probabilities (K, C) and labels of the rows that count; labels of yes and no as two classes."""
    out = data.logits if calibrator is None else calibrator.transform(data.logits)
    batch = read(out.double(), data.labels, Temperature(ignore_index=data.ignore_index))
    if batch.task == MULTICLASS or batch.y.dim() == 1:
        return batch.z.log_softmax(1), batch.y
    known = batch.y != SKIP
    return two(batch.z[known]).log_softmax(1), batch.y[known]


def items(data: Data) -> Tensor:
    """Which row, image or volume each judged label belongs to."""
    known = (data.labels.long() != data.ignore_index).reshape(len(data.labels), -1).sum(1)
    return torch.repeat_interleave(torch.arange(len(known)), known)


def of_label(log_p: Tensor, y: Tensor) -> Tensor:
    """The log-probability of each label."""
    return log_p.gather(1, y[:, None])[:, 0]


def shared(a: Data, b: Data) -> float:
    """The share of rows of `b` that are in `a`, logits and labels alike to the bit in float32."""
    known = set(_fingerprints(a))
    found = [mark in known for mark in _fingerprints(b)]
    return sum(found) / max(len(found), 1)


def _fingerprints(data: Data) -> Iterator[bytes]:
    z = data.logits.float().reshape(len(data.logits), -1).numpy()
    y = data.labels.long().reshape(len(data.labels), -1).numpy()
    return (a.tobytes() + b.tobytes() for a, b in zip(z, y, strict=True))


def _suiting(data: Data, methods: Iterable[type[Calibrator]]) -> tuple[list[type[Calibrator]], list[tuple[str, str]]]:
    """Those that fit the shape and end in reasonable time, and why the others are left out."""
    classes, rows = data.logits.shape[1] if data.logits.dim() > 1 else 1, data.labels.numel()
    image = data.logits.dim() == 4 and data.labels.shape != data.logits.shape and classes > 1
    chosen, skipped = [], []
    for kind in methods:
        name, why = kind.__name__, ""
        if kind.card.spatial and not image:
            why = "needs images: logits (N, C, H, W)"
        elif name == "MetaCal":
            why = "gives rows up, which is a decision and not a correction"
        elif name in ("MatrixScaling", "Dirichlet") and classes > 200:
            why = f"{classes * (classes + 1):,} parameters"
        elif name in ("VennAbers", "BBQ", "ParameterizedTemperature") and rows * classes > 2_000_000:
            why = f"takes minutes for {rows:,} rows of {classes} classes"
        skipped.append((name, why)) if why else chosen.append(kind)
    return chosen, skipped


def _run(kind: type[Calibrator], fit: Data, judge: Data | None) -> tuple[Tensor, float, tuple[str, ...]]:
    """Log-probabilities of the judged rows, seconds of one fit, and what the fit warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        start = time.perf_counter()
        if judge is not None:
            found = kind(ignore_index=fit.ignore_index).fit(fit.logits, fit.labels)
            seconds = time.perf_counter() - start
            log_p = judged(found, judge)[0]
        else:
            parts = [judged(kind(ignore_index=fit.ignore_index).fit(a.logits, a.labels), b)[0] for a, b in _folds(fit)]
            seconds = (time.perf_counter() - start) / FOLDS
            log_p = torch.cat(parts)
    said = [str(w.message) for w in caught if issubclass(w.category, CalibrationWarning)]
    alike = {re.sub(r"\d", "", note): note for note in reversed(said)}  # folds differ in numbers; the first speaks
    return log_p, seconds, tuple(reversed(alike.values()))


def _order(data: Data) -> list[Tensor]:
    if len(data.logits) < 2 * FOLDS:
        raise InputError(f"{len(data.logits)} items are too few for {FOLDS} folds: give a second file to judge on")
    return list(torch.randperm(len(data.logits), generator=torch.Generator().manual_seed(0)).chunk(FOLDS))


def _folds(data: Data) -> Iterator[tuple[Data, Data]]:
    parts = _order(data)
    for i, part in enumerate(parts):
        yield data.take(torch.cat(parts[:i] + parts[i + 1 :])), data.take(part)


def _in_order(data: Data) -> Data:
    """The rows in the order in which the folds judge them."""
    return data.take(torch.cat(_order(data)))


def _row(
    method: str, log_p: Tensor, y: Tensor, limits: tuple[float, float], seconds: float, notes: tuple[str, ...]
) -> Row:
    low, high = limits
    brier = (log_p.exp() - torch.nn.functional.one_hot(y, log_p.shape[1])).square().sum(1).mean()
    nll, ece, accuracy = -float(of_label(log_p, y).mean()), ECE()(log_p, y), Accuracy()(log_p, y)
    return Row(method, nll, low, high, float(brier), ece, accuracy, seconds, notes)


def interval(x: Tensor, item: Tensor) -> tuple[float, float]:
    """The 95 % interval of a mean over rows that come in items, such as pixels in images: the items are resampled.

    Of very many items it is the normal one.
    """
    _, item = item.unique(return_inverse=True)
    count = torch.bincount(item).to(x.dtype)
    total = torch.zeros_like(count).index_add(0, item, x)
    mean = total.sum() / count.sum()
    if len(count) > MOST:
        half = 1.96 * float((total - mean * count).square().sum().sqrt() / count.sum())
        return float(mean) - half, float(mean) + half
    generator = torch.Generator().manual_seed(0)
    picks = (torch.randint(len(count), (len(count),), generator=generator) for _ in range(RESAMPLES))
    means = torch.stack([total[pick].sum() / count[pick].sum() for pick in picks])
    low, high = torch.quantile(means, torch.tensor([0.025, 0.975], dtype=x.dtype)).tolist()
    return low, high


def _recommend(rows: list[Row], gains: dict[str, Tensor], item: Tensor) -> tuple[str, str]:
    """The simplest among those that the lowest NLL is not clearly ahead of; the table is in order of simplicity."""
    best = min(rows, key=lambda row: row.nll)
    near = [row for row in rows if interval(gains[row.method] - gains[best.method], item)[0] <= 0]
    chosen = near[0]
    if chosen.method == NONE:
        return NONE, f"no method lowers the NLL by more than chance (the lowest is {best.nll:.4f} with {best.method})"
    if chosen is best:
        return best.method, "it has the lowest NLL, and none that is simpler comes within chance of it"
    return chosen.method, f"the simplest that is within chance of the lowest NLL ({best.nll:.4f} with {best.method})"
