"""Settings of a calibrator: dataclass fields whose ranges are data, checked when `fit` is called and not before."""

import math
from dataclasses import MISSING, Field, field, fields
from typing import Any

from confide.core.knobs import Knob


def setting(
    default: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[Any, ...] = (),
    kind: tuple[type, ...] = (),
    doc: str,
) -> Any:
    """A field with a range; typed as what it will hold."""
    return field(default=default, metadata={"knob": Knob(default, low, high, 1, choices, kind, None, doc)})


def knobs_of(owner: Any) -> dict[str, Knob]:
    """The ranges by name, the calibrator's own before those that all have."""
    found = [(f.name, _named(f)) for f in fields(owner) if "knob" in f.metadata]
    return dict(sorted(found, key=lambda pair: pair[0] in ("ignore_index", "dim", "from_probs")))


def check(owner: Any) -> None:
    """Raise KnobError unless every setting is in its range."""
    for name, knob in knobs_of(owner).items():
        knob.check(getattr(owner, name))


def _named(f: "Field[Any]") -> Knob:
    assert f.default is not MISSING
    knob: Knob = f.metadata["knob"]
    knob.attribute = knob.keyword = f.name
    return knob
