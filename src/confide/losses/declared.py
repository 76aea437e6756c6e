"""What every loss declares, read and checked when its class is made."""

import inspect
import math
from inspect import Parameter, Signature
from typing import Any

from confide.core.knobs import Knob, knobs_of


def check_declared(kind: type) -> None:
    """Refuse a loss that is only half there."""
    for name in ("card", "limits", "loss", "shift"):
        if name not in vars(kind):
            raise TypeError(f"{kind.__name__} lacks `{name}`, which every loss must declare")
    for name, k in knobs_of(kind).items():
        if not k.choices and not (math.isfinite(k.low) and math.isfinite(k.high)):
            raise TypeError(f"{kind.__name__}.{name} lacks a range: knob(default={k.default}, low=..., high=...)")


def signature_of(knobs: dict[str, Knob]) -> Signature:
    """What the constructor takes, for help and editors."""
    defaults: dict[str, Any] = {name: k.default for name, k in knobs.items()} | {"weight": None}
    return Signature([Parameter(name, Parameter.KEYWORD_ONLY, default=value) for name, value in defaults.items()])


def side_of(kind: Any) -> tuple[str, ...]:
    """The keywords of `forward` that its context asks for."""
    return tuple(list(inspect.signature(kind.context).parameters)[2:])
