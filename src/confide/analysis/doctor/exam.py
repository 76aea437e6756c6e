"""All checks over all batches, and the diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from confide.analysis.doctor.agreement import Agreement
from confide.analysis.doctor.batch import Batch, Check, Finding, Setting
from confide.analysis.doctor.copies import Copies
from confide.analysis.doctor.labels import Absent, Labels
from confide.analysis.doctor.numbers import Finite, Saturated, Simplex
from confide.analysis.doctor.spread import Constant, DoubleSoftmax, Ties

CHECKS: tuple[Callable[[Setting], Check], ...] = (
    *(Finite, Labels, DoubleSoftmax, Simplex, Agreement, Constant, Saturated, Ties, Absent),
)
NEED_LABELS = (Labels, Agreement)


PIECE = 1 << 20  # scores that are looked at together: what the checks hold beside them stays in the cache


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
        self.setting, self.items, self.copies = setting, 0, Copies(setting)
        self.checks: Sequence[Check] = [kind(setting) for kind in CHECKS if labelled or kind not in NEED_LABELS]

    def observe(self, scores: Tensor, labels: Tensor | None, origin: tuple[int, ...]) -> None:
        """Scores (n, C, ...), labels (n, ...) or shaped like the scores; `origin` is where the first item stands."""
        self.copies.observe(scores, origin)
        for part, truth, start in _pieces(scores, labels, origin):
            batch = Batch(self.setting, part, truth, start)
            self.items += len(batch.z)
            for check in self.checks:
                check.observe(batch)

    def _all(self) -> list[Check | Copies]:
        return [*self.checks, self.copies]

    def diagnosis(self) -> Diagnosis:
        """What the counts mean."""
        found = [(check, list(check.findings())) for check in self._all()]
        findings = [finding for _, some in found for finding in some]
        fine = [check.fine for check, some in found if not some and check.fine]
        return Diagnosis(tuple(sorted(findings, key=lambda finding: not finding.wrong)), tuple(fine), self.items)


def _pieces(
    scores: Tensor, labels: Tensor | None, origin: tuple[int, ...]
) -> Iterator[tuple[Tensor, Tensor | None, tuple[int, ...]]]:
    """Some rows at a time; of a large image or volume, some of its lines."""
    step = PIECE * len(scores) // max(scores.numel(), 1)
    if step or scores.dim() == 2:
        for a in range(0, len(scores), max(step, 1)):
            rows = slice(a, a + max(step, 1))
            yield scores[rows], None if labels is None else labels[rows], (origin[0] + a, *origin[1:])
        return
    soft, lines = labels is not None and labels.dim() == scores.dim(), scores.shape[2]
    step = max(1, PIECE * lines // (scores.numel() // len(scores)))
    for i in range(len(scores)):
        for a in range(0, lines, step):
            part = slice(a, a + step)
            truth = None if labels is None else labels[i : i + 1, :, part] if soft else labels[i : i + 1, part]
            yield scores[i : i + 1, :, part], truth, (origin[0] + i, a + (origin[1] if len(origin) > 1 else 0))
