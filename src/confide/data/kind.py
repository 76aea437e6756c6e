"""Logits or probabilities: decided by the name and by the content, with the reason; refused where the two differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide.core.errors import KnobError
from confide.data.files.array import Values
from confide.data.naming import LOGITS, PROBS, word

KINDS = ("logits", "probs")
MOST, FEW = 0.9, 0.1  # shares of rows by which the content decides


@dataclass(frozen=True)
class Kind:
    """What the scores are, a sentence that says why, and what speaks against it."""

    inputs: str
    said: str
    doubt: str = ""
    shown: str | None = None  # what the content alone says


def decide(name: str, values: Values, dtype: str, wanted: str | None = None) -> Kind:
    """From a look at rows of scores, classes last; one axis only where there is one score a label."""
    if wanted is not None and wanted not in KINDS:
        raise KnobError(f"inputs must be 'logits' or 'probs', got {wanted!r}")
    share, content = _content(values, dtype)
    shown = "probs" if share >= MOST else "logits" if share <= FEW else None
    if wanted is not None:
        return Kind(wanted, f"Taken for {_word(wanted)}, as you said; {content}.")
    first = name.split("+")[0].rstrip("0123456789 _.-:[(])")
    named = next((kind for kind, words in zip(KINDS, (LOGITS, PROBS), strict=True) if _named(name, first, words)), None)
    if named is None:
        return _unnamed(name, shown, content)
    if shown is None or shown == named:
        return Kind(named, f"Taken for {_word(named)}, by the name; {content}.")
    return Kind(named, f"Taken for {_word(named)}, by the name.", _contradiction(name, named, shown, content), shown)


def _named(name: str, first: str, words: tuple[str, ...]) -> bool:
    head = first.split("_")
    return bool(word(name, words) or any(word("_".join(head[: i + 1]), words) for i in range(len(head))))


def _unnamed(name: str, shown: str | None, content: str) -> Kind:
    if shown is not None:
        return Kind(shown, f"Taken for {_word(shown)}: {content}.")
    doubt = f"{name!r} may hold logits or probabilities: {content}; say which with --inputs logits or --inputs probs"
    return Kind("logits", "", doubt)


def _contradiction(name: str, named: str, shown: str, content: str) -> str:
    fix = f"pass --inputs {shown} if the content is right, or --inputs {named} if the name is"
    if named == "logits":
        return f"{name!r} is named like logits, but these look like probabilities: {content}; {fix}"
    return f"{name!r} is named like probabilities, but it cannot hold them: {content}; {fix}"


def _content(values: Values, dtype: str) -> tuple[float, str]:
    """The share of rows that are probabilities, and the words for it."""
    flat = values.reshape(-1, 1) if values.ndim == 1 else values.reshape(-1, values.shape[-1])
    flat = flat[np.isfinite(flat).all(1)].astype(np.float64)
    slack = 1e-2 if dtype in ("float16", "bfloat16") else 1e-3
    if not len(flat):
        return 0.5, "no row looked at is finite"
    inside: NDArray[np.bool_] = np.all((flat >= -slack) & (flat <= 1 + slack), axis=1)
    sums = flat.sum(1)
    if values.ndim == 1:
        return float(inside.mean()), f"values run from {flat.min():.4g} to {flat.max():.4g}"
    share = float((inside & (abs(sums - 1) <= slack)).mean())
    return share, _words(share, flat, sums, inside)


def _words(share: float, flat: Values, sums: Values, inside: NDArray[np.bool_]) -> str:
    if share == 1:
        return "every row looked at lies in [0, 1] and sums to 1"
    if share > FEW:
        return f"{share:.1%} of the rows looked at lie in [0, 1] and sum to 1"
    if abs(np.median(sums) - 100) < 0.1 and flat.min() >= 0:
        return "rows sum to 100, so these are percentages: divide by 100"
    if inside.all():
        return f"values lie in [0, 1], but rows sum to {sums.min():.3g} to {sums.max():.3g}"
    if (flat <= 0).all() and abs(np.median(np.exp(flat).sum(1)) - 1) < 1e-2:
        return "their exponentials sum to 1, so these are log-probabilities, which are valid logits"
    return f"values run from {flat.min():.4g} to {flat.max():.4g}"


def _word(kind: str) -> str:
    return "probabilities" if kind == "probs" else "logits"
