"""Numbers that are none, probabilities that are none, and confidences that lost their last digits."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from confide.analysis.doctor.batch import Batch, Finding, Setting, Tally, share, where


class Finite:
    """NaN and infinite scores."""

    fine = "every score is a number"

    def __init__(self, setting: Setting) -> None:
        self.setting, self.nan, self.inf, self.rows = setting, Tally(), Tally(), 0

    def observe(self, batch: Batch) -> None:
        """Logits of -inf are masked classes."""
        z = batch.z
        self.rows += len(z)
        if batch.finite.all():
            return
        nan = z.isnan().any(1)
        self.nan.add(nan, batch)
        self.inf.add(~nan & ((z == torch.inf).any(1) | (z == -torch.inf).all(1)), batch)

    def findings(self) -> Iterator[Finding]:
        for code, what, tally in (("nan", "NaN", self.nan), ("inf", "infinite scores", self.inf)):
            if tally.count:
                yield Finding(
                    code,
                    True,
                    f"{what} in {share(tally.count, self.rows)} rows, first in {where(tally.first)}",
                    "One such row makes every average NaN, or is counted as a wrong answer.",
                    "Look for a diverged network or a logarithm of 0; mark rows without a prediction with the ignore "
                    "label.",
                    tally.count,
                    tally.first,
                )


class Simplex:
    """Probabilities outside [0, 1], and rows of them that do not sum to 1."""

    fine = "probabilities lie in [0, 1] and sum to 1"

    def __init__(self, setting: Setting) -> None:
        self.setting, self.outside, self.sums, self.rows = setting, Tally(), Tally(), 0
        self.low, self.high, self.least, self.most = 0.0, 1.0, 1.0, 1.0
        if setting.inputs == "logits":
            self.fine = ""

    def observe(self, batch: Batch) -> None:
        if self.setting.inputs == "logits":
            return
        slack, p = self.setting.tolerance, batch.z
        self.rows += len(p)
        sums = p.double().sum(1)
        outside = batch.finite & ((p < -slack) | (p > 1 + slack)).any(1)
        off = batch.finite & ~outside & ((sums - 1).abs() > slack)
        self.outside.add(outside, batch)
        self.sums.add(off, batch)
        if outside.any():
            self.low = min(self.low, float(p[outside].min()))
            self.high = max(self.high, float(p[outside].max()))
        if off.any():
            self.least, self.most = min(self.least, float(sums[off].min())), max(self.most, float(sums[off].max()))

    def findings(self) -> Iterator[Finding]:
        if self.outside.count:
            yield Finding(
                "range",
                True,
                f"values outside [0, 1], from {self.low:.4g} to {self.high:.4g}, in "
                f"{share(self.outside.count, self.rows)} rows, first in {where(self.outside.first)}",
                "Confidences above 1 and negative probabilities have no bin and no logarithm; some tools then take "
                "the whole batch for logits.",
                "Were they resampled (bicubic)? Resample linearly, or clamp them and divide by their sum.",
                self.outside.count,
                self.outside.first,
            )
        if self.sums.count:
            yield Finding(
                "sums",
                True,
                f"rows sum to {self.least:.4g} to {self.most:.4g} in {share(self.sums.count, self.rows)} rows, first "
                f"in {where(self.sums.first)}",
                "NLL, Brier and ECE take them for probabilities of one class among several, which they are not.",
                "If every class is a yes or no of its own (sigmoid), look at one class at a time; if rounding did it, "
                "divide by the sum.",
                self.sums.count,
                self.sums.first,
            )


class Saturated:
    """Confidences of exactly 1, and true classes with a probability of exactly 0."""

    fine = "no confidence is rounded to 1"

    def __init__(self, setting: Setting) -> None:
        self.setting, self.ones, self.zeros, self.rows = setting, Tally(), Tally(), 0

    def observe(self, batch: Batch) -> None:
        self.rows += len(batch.z)
        if self.setting.inputs == "probs":
            self.ones.add(batch.top[0][:, 0] == 1, batch)
        else:
            z = batch.z.float()
            self.ones.add(batch.finite & ((z - z.amax(1, keepdim=True)).exp().sum(1) == 1), batch)
        if batch.y is not None and len(batch.z):
            label = torch.where(batch.labelled, batch.y, 0)
            score = batch.z.gather(1, label[:, None]).squeeze(1)
            nothing = 0.0 if self.setting.inputs == "probs" else -torch.inf
            self.zeros.add(batch.labelled & (score == nothing), batch)

    def findings(self) -> Iterator[Finding]:
        if self.zeros.count:
            yield Finding(
                "zero-at-label",
                True,
                f"the true class has a probability of exactly 0 in {share(self.zeros.count, self.rows)} rows, first in "
                f"{where(self.zeros.first)}",
                "NLL is infinite, or whatever number a tool puts in place of 0; no temperature can be fitted to it.",
                "Save logits instead of probabilities, or the softmax of logits in float64.",
                self.zeros.count,
                self.zeros.first,
            )
        if self.ones.count:
            yield self._ones()

    def _ones(self) -> Finding:
        every, probs = self.ones.count == self.rows, self.setting.inputs == "probs"
        what = "are exactly 1" if probs else "would be exactly 1 after a softmax in float32"
        return Finding(
            "saturated",
            every,
            f"{'all confidences' if every else 'confidences'} {what}: {share(self.ones.count, self.rows)}, first in "
            f"{where(self.ones.first)}",
            "ECE is then 1 minus the accuracy: the file says nothing about confidence."
            if every
            else "They have lost how sure the network was: NLL and temperature suffer; ECE hardly, if 1 has a bin."
            if probs
            else "None here, as long as these logits are kept: their probabilities cannot be stored in float32.",
            "Was it a hard prediction, or a model that gives no probabilities? Save its logits."
            if every
            else "Save logits: the rounding is in the file and cannot be undone."
            if probs
            else "Keep the logits; do not pass on their softmax.",
            self.ones.count,
            self.ones.first,
        )
