"""All checks over all batches, and the diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from confide.analysis.doctor.agreement import Agreement
from confide.analysis.doctor.batch import Batch, Check, Finding, Setting
from confide.analysis.doctor.copies import Copies
from confide.analysis.doctor.labels import Absent, Labels
from confide.analysis.doctor.numbers import Finite, Saturated, Simplex
from confide.analysis.doctor.spread import Constant, DoubleSoftmax, Ties

CHECKS: tuple[Callable[[Setting], Check], ...] = (
    *(Finite, Labels, DoubleSoftmax, Simplex, Agreement, Copies, Constant, Saturated, Ties, Absent),
)
NEED_LABELS = (Labels, Agreement)


@dataclass(frozen=True)
class Diagnosis:
    """What was found, the worst first, and what was looked at and is fine."""

    findings: tuple[Finding, ...]
    fine: tuple[str, ...]
    items: int  # predictions that were looked at

    @property
    def wrong(self) -> bool:
        """Whether numbers computed from the file would be wrong."""
        return any(finding.wrong for finding in self.findings)


class Exam:
    """One pass: `observe` every batch, then ask for the `diagnosis`. Memory does not grow with the data."""

    def __init__(self, setting: Setting, labelled: bool = True) -> None:
        self.setting, self.items = setting, 0
        self.checks: Sequence[Check] = [kind(setting) for kind in CHECKS if labelled or kind not in NEED_LABELS]

    def observe(self, scores: Tensor, labels: Tensor | None, origin: tuple[int, ...]) -> None:
        """Scores (n, C, ...), labels (n, ...) or shaped like the scores; `origin` is where the first item stands."""
        batch = Batch(self.setting, scores, labels, origin)
        self.items += len(batch.z)
        for check in self.checks:
            check.observe(batch)

    def diagnosis(self) -> Diagnosis:
        """What the counts mean."""
        found = [(check, list(check.findings())) for check in self.checks]
        findings = [finding for _, some in found for finding in some]
        fine = [check.fine for check, some in found if not some and check.fine]
        return Diagnosis(tuple(sorted(findings, key=lambda finding: not finding.wrong)), tuple(fine), self.items)
