"""Scores that do not depend on the row, ties, and a softmax that was applied twice."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from confide.analysis.doctor.batch import HALF, Batch, Finding, Setting, Tally, share, where
from confide.analysis.doctor.labels import SHOWN

FEWEST = 20  # rows below which nothing is said
FLAT = 1e-3  # a spread over rows, beside that over classes, which says that rows are alike
MANY_TIES = 5e-3


class Constant:
    """Classes whose score never changes, and networks that say the same about every row."""

    fine = "scores differ from row to row"

    def __init__(self, setting: Setting) -> None:
        self.low = torch.full((setting.classes,), torch.inf, dtype=torch.float64)
        self.high, self.rows = -self.low, 0

    def observe(self, batch: Batch) -> None:
        z = batch.z[batch.finite].double()
        self.rows += len(z)
        if len(z):
            self.low, self.high = torch.minimum(self.low, z.amin(0)), torch.maximum(self.high, z.amax(0))

    def findings(self) -> Iterator[Finding]:
        if self.rows < FEWEST:
            return
        span = self.high - self.low
        scale = float((self.high.max() - self.low.min()).abs())
        if float(span.max()) <= FLAT * scale or scale == 0:
            yield Finding(
                "identical-rows",
                True,
                f"all {self.rows:,} rows have nearly the same scores: no class moves by over {float(span.max()):.3g}",
                "Accuracy is the share of one class, and calibration numbers describe a constant.",
                "Was the network loaded (weights, evaluation mode), and was its input normalised?",
                self.rows,
            )
            return
        still = (span == 0).nonzero().squeeze(1).tolist()
        if still:
            yield Finding(
                "constant-columns",
                False,
                f"{len(still):,} of {len(span):,} classes have the same score in every row: "
                f"{', '.join(map(str, still[:SHOWN]))}{', ...' if len(still) > SHOWN else ''}",
                "As classes they take part in every average over classes; as logits they take a share of the softmax.",
                "If they are padding or no classes at all, leave them out.",
                len(still),
            )


class Ties:
    """Rows with two largest scores, mostly from numbers with few digits."""

    fine = "hardly a row has two largest scores"

    def __init__(self, setting: Setting) -> None:
        self.setting, self.ties, self.rows = setting, Tally(), 0
        self.half = dict.fromkeys(HALF, True)

    def observe(self, batch: Batch) -> None:
        self.rows += len(batch.z)
        values = batch.top[0]
        self.ties.add(batch.finite & (values[:, 0] == values[:, 1]), batch)
        for kind in HALF:
            self.half[kind] &= torch.equal(values.to(getattr(torch, kind)).to(values.dtype), values)

    def findings(self) -> Iterator[Finding]:
        if not self.ties.count:
            return
        kind = next((kind for kind in HALF if self.half[kind]), None)
        digits = f"; the numbers have the digits of {kind}" if kind else ""
        yield Finding(
            "ties",
            self.ties.count > MANY_TIES * self.rows,
            f"the two largest scores are equal in {share(self.ties.count, self.rows)} rows, first in "
            f"{where(self.ties.first)}{digits}",
            "Which class is predicted there depends on the tool (here: the lowest), and accuracy with it.",
            "Take the softmax and the argmax in float32 before saving, or save float32 logits.",
            self.ties.count,
            self.ties.first,
        )


class DoubleSoftmax:
    """Probabilities handed on as logits, and scores that went through a softmax twice."""

    fine = "no softmax was applied twice"

    def __init__(self, setting: Setting) -> None:
        self.setting, self.rows, self.simplex, self.twice, self.widest = setting, 0, 0, 0, 0.0

    def observe(self, batch: Batch) -> None:
        z, slack = batch.z[batch.finite].double(), self.setting.tolerance
        self.rows += len(z)
        if not len(z):
            return
        if self.setting.inputs == "probs":
            z = z.clamp_min(1e-300).log()
        else:
            self.simplex += int(((z.amin(1) >= -slack) & ((z.sum(1) - 1).abs() <= slack)).sum())
        low, high = z.amin(1), z.amax(1)
        # If z is p and a constant, for probabilities p, then no entry lies more than 1/C below the mean.
        self.twice += int(((z.mean(1) - low <= 1 / z.shape[1] + slack) & (high - low <= 1 + slack)).sum())
        self.widest = max(self.widest, float((high - low).max()))

    def findings(self) -> Iterator[Finding]:
        if self.rows < FEWEST:
            return
        probs = self.setting.inputs == "probs"
        if not probs and self.simplex > 0.9 * self.rows:
            what = (
                f"these are probabilities, not logits: {share(self.simplex, self.rows)} rows lie in [0, 1] and sum to 1"
            )
        elif self.twice > 0.999 * self.rows and self.widest > (0.95 if self.setting.classes == 2 else 0.5):
            what = (
                f"a softmax was applied twice, by all appearance: in {share(self.twice, self.rows)} rows the "
                f"{'logarithms' if probs else 'logits'} are, up to a constant, themselves probabilities"
            )
        else:
            return
        yield Finding(
            "double-softmax",
            True,
            what,
            f"A second softmax leaves no confidence above e / (e + C - 1), here "
            f"{torch.e / (torch.e + self.setting.classes - 1):.3g}, so that NLL and ECE say nothing of the network.",
            "Pass --inputs probs, or save the values before the softmax."
            if not probs and self.simplex > 0.9 * self.rows
            else "Remove the softmax from the model, or from what follows it, and save the predictions again.",
            self.rows,
        )
