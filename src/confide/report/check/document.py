"""Everything that a check says, as plain data: what --json writes, and all that text, page and figures are made from.

schema        1
confide       its version
command, made, environment   provenance
checks        [{name, path, files: [{path, bytes, sha256}], sources, taken_for: sentences, class_names, unit, advice:
              sentences, misses: [{row, confidence, label, predicted}] or None, result}]: one for each input,
              `result` as `confide.metrics.audit.result` describes it
comparisons   [{a, b, headline, paired, note, changes: [{key, a, b, difference, low, high, verdict}]}]: the first input
              against each of the others
fail_if       None, or {condition, failed, values}
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from confide.core.errors import InputError
from confide.metrics.audit.audit import Audit
from confide.metrics.audit.compare import Comparison, compare
from confide.metrics.audit.rows import table
from confide.report.check import provenance
from confide.report.check.advice import advice
from confide.report.check.condition import Condition
from confide.report.check.gathering import Gathered

SCHEMA = 1
ENDS = ("", "_low", "_high", "_chance")
WORST = ("worst_group_ece", "worst_group_ece_low")
CHANGES = ("ece", "nll", "brier", "accuracy")


def document(made: Sequence[Gathered], version: str, hashed: bool = True) -> dict[str, Any]:
    """Compute and describe. `hashed` also reads the files once more, for their hashes."""
    checks = [_check(one, hashed) for one in made]
    return {
        "schema": SCHEMA,
        "confide": version,
        "command": provenance.command(),
        "made": provenance.now(),
        "environment": provenance.environment(),
        "checks": checks,
        "comparisons": [_compared(made[0], other) for other in made[1:]],
        "fail_if": None,
    }


def write(data: dict[str, Any]) -> str:
    """As JSON text."""
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def _check(one: Gathered, hashed: bool) -> dict[str, Any]:
    result = one.audit.result()
    if one.sample is not None and result["verdict"]["calibrated"] is False:
        result["temperature"] = one.sample.judge(one.audit.inputs)
    return {
        "name": one.name,
        "path": str(one.path),
        "files": provenance.files_of(one.path, one.found) if hashed else [],
        "sources": one.audit.sources,
        "taken_for": list(one.said),
        "class_names": list(one.class_names),
        "unit": one.unit,
        "advice": advice(result, one.class_names),
        "misses": None if one.misses is None else one.misses.kept,
        "result": result,
    }


def source(one: Gathered) -> dict[str, Any]:
    """What saved statistics keep of their origin."""
    return {
        "files": provenance.files_of(one.path, one.found),
        "taken_for": list(one.said),
        "class_names": list(one.class_names),
        "unit": one.unit,
    }


def _compared(a: Gathered, b: Gathered) -> dict[str, Any]:
    found = _paired(a, b)
    return {"a": a.name, "b": b.name, **found.as_dict()}


def _paired(a: Gathered, b: Gathered) -> Comparison:
    """By units or rows where both hold the same labels in the same order, as far as that is known."""
    if a.labels_digest != b.labels_digest or a.audit.sums.n() != b.audit.sums.n():
        found = compare(_loose(a.audit), _loose(b.audit))
        return dataclasses.replace(found, note="not paired: they do not hold the same labels in the same order")
    if a.pairing is None or b.pairing is None:
        return compare(a.audit, b.audit)
    found = compare(a.pairing, b.pairing)
    return dataclasses.replace(found, note="paired by rows: both hold the same labels in the same order")


def _loose(audit: Audit) -> Audit:
    """The same sums without units."""
    twin = Audit(**audit.settings())
    twin.sums = audit.sums
    return twin


def names(several: bool) -> list[str]:
    """What a condition may speak of."""
    audit = Audit(2)
    audit.dense = True  # with the metrics of overlap
    found = ["n", *(row.key + end for row in table(audit) for end in ENDS), *WORST]
    return found + ([f"{key}_change{end}" for key in CHANGES for end in ENDS[:3]] if several else [])


def values(data: dict[str, Any]) -> dict[str, float | None]:
    """The numbers behind these names: of the last input, and of its comparison with the first."""
    result = data["checks"][-1]["result"]
    found: dict[str, float | None] = dict.fromkeys(names(bool(data["comparisons"]))) | {"n": result["n"]}
    for row in result["metrics"]:
        found |= {row["key"] + end: row[end[1:] or "value"] for end in ENDS}
    known = [row["ece"] for row in result["groups"] if not row["too_few"]]
    for name, key in zip(WORST, ("value", "low"), strict=True):
        found[name] = max((ece[key] for ece in known if ece[key] is not None), default=None)
    for change in data["comparisons"][-1]["changes"] if data["comparisons"] else ():
        found |= {f"{change['key']}_change{end}": change[end[1:] or "difference"] for end in ENDS[:3]}
    return found


def judge(data: dict[str, Any], condition: Condition) -> bool:
    """Whether the check fails; noted in the document."""
    known = values(data)
    failed = condition.holds(known)
    data["fail_if"] = {
        "condition": condition.text,
        "failed": failed,
        "values": {name: known[name] for name in condition.names()},
    }
    return failed


def merged(paths: Sequence[Any]) -> Audit:
    """One audit from files of saved statistics; a file given twice is refused by name."""
    total: Audit | None = None
    owners: dict[str, Any] = {}
    for path in paths:
        audit = Audit.load(path)
        for shard in audit.shards:
            if shard in owners:
                raise InputError(f"{path} holds a shard that {owners[shard]} holds, too ({shard[:12]}); give each once")
            owners[shard] = path
        try:
            total = audit if total is None else total.merge(audit)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
    assert total is not None
    return total
