"""The losses of `papers_rows` against their oracles, by the helpers of `test_oracles`."""

import papers_rows
import pytest
from test_oracles import IGNORED, batch, compare, differences, soft, tied

from confide.losses import CPC, Brier, ConfidencePenalty, DualFocal, Focal, FocalSD, MbLSSquared

PAIRS = (
    [(Focal, papers_rows.focal, {"gamma": g}) for g in (0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 3.5)]
    + [
        (FocalSD, papers_rows.focal_sd, {"low": low, "high": high, "threshold": t})
        for low, high, t in [(5.0, 3.0, 0.21), (5.0, 2.0, 0.45), (0.5, 0.0, 0.9)]  # no p of tied classes, such as 1 / 5
    ]
    + [(DualFocal, papers_rows.dual_focal, {"gamma": g}) for g in (0.0, 0.5, 1.0, 2.3, 5.0)]
    + [
        (ConfidencePenalty, papers_rows.confidence_penalty, {"strength": s, "over": o})
        for s in (0.0, 0.1, 2.0)
        for o in ("sum", "mean")
    ]
    + [
        (MbLSSquared, papers_rows.mbls_squared, {"margin": m, "strength": s, "over": o})
        for m, s in [(6.0, 0.1), (0.0, 0.05), (3.0, 1.0)]
        for o in ("mean", "sum")
    ]
    + [(CPC, papers_rows.cpc, {"pairs": p, "rest": r}) for p, r in [(0.1, 1.0), (1.0, 0.0), (0.0, 2.0)]]
    + [(Brier, papers_rows.brier, {})]
)
NAMES = [f"{kind.__name__}({', '.join(f'{k}={v}' for k, v in knobs.items())})" for kind, _, knobs in PAIRS]
every_pair = pytest.mark.parametrize(("kind", "oracle", "knobs"), PAIRS, ids=NAMES)
ways = pytest.mark.parametrize("fused", [False, "auto"], ids=["autograd", "one_pass"])


def with_soft_labels(logits, _):
    return logits, soft(logits)


BATCHES = {
    "hard": batch(),
    "two classes": batch(classes=2, rows=8, seed=1),
    "ties": tied(),
    "soft": with_soft_labels(*batch(seed=2)),
    "soft, ties": with_soft_labels(*tied(seed=1)),
    "soft, two classes": with_soft_labels(*batch(classes=2, rows=8, seed=3)),
    "large": batch(scale=300.0, rows=6, seed=4),
    "small": batch(scale=0.5, seed=5),
}


@ways
@every_pair
@pytest.mark.parametrize("name", BATCHES)
def test_values_and_gradients(kind, oracle, knobs, fused, name):
    compare(kind, oracle, knobs, fused, *BATCHES[name])


@ways
@every_pair
def test_ignored_rows(kind, oracle, knobs, fused):
    logits, target = batch(seed=3)
    target[1::3] = IGNORED
    compare(kind, oracle, knobs, fused, logits, target, ignored=IGNORED)
    label = soft(logits)
    label[1::3] = 0.0
    compare(kind, oracle, knobs, fused, logits, label)


# The oracles against central differences.


@every_pair
def test_oracle_gradient_is_that_of_its_value(kind, oracle, knobs):
    logits, target = batch(rows=4, scale=2.0, seed=8)
    for z, y in zip(logits.tolist(), target.tolist(), strict=True):
        _, gradient = oracle(z, y, **knobs)
        assert differences(lambda z, y=y: oracle(z, y, **knobs)[0], z) == pytest.approx(gradient, abs=1e-7, rel=1e-7)
