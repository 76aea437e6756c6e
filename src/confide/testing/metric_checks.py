"""Checks of metrics: sums that merge to the same bits, rows that count for nothing, doors, files, refusals."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from confide.core.errors import InputError
from confide.metrics.metric import Metric
from confide.testing.samples import expect_error, one_hot

MakeMetric = Callable[..., Metric[Any]]
CLASSES = 4


def pictures(images: int = 6, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits (N, 4, 5, 6) in float32 and labels that are often right."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn((images, CLASSES, 5, 6), generator=generator) * 3
    right = torch.rand((images, 5, 6), generator=generator) < 0.7
    return z, torch.where(right, z.argmax(1), torch.randint(CLASSES, right.shape, generator=generator))


def filled(make: MakeMetric, z: Tensor, y: Tensor, **options: Any) -> Metric[Any]:
    """A metric that has seen one batch; `side` among the options goes to `update`."""
    side = options.pop("side", {})
    metric = make(**options)
    metric.update(z, y, **side)
    return metric


def any_partition_gives_the_same_bits(make: MakeMetric) -> None:
    """Any split and order of the images; of metrics of rows also any layout and any split of the rows."""
    z, y = pictures()
    whole = filled(make, z, y)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    for size in (1, 2, 5):
        metric = make()
        for part in order.split(size):
            metric.update(z[part], y[part])
        assert metric.stats == whole.stats, f"other sums from batches of {size} in another order"
        assert _same(metric.compute(), whole.compute()), f"another value from batches of {size}"
    assert filled(make, z.movedim(1, -1).contiguous(), y, dim=-1).stats == whole.stats, "other sums, classes last"
    if whole.whole:
        return
    rows, labels = z.movedim(1, -1).reshape(-1, CLASSES), y.reshape(-1)
    for size in (1, 7, 64):
        metric = make()
        for part in torch.arange(len(labels)).flip(0).split(size):
            metric.update(rows[part], labels[part])
        assert metric.stats == whole.stats, f"other sums from rows in batches of {size}"


def sums_merge(make: MakeMetric) -> None:
    """Merging is associative and commutative, has a zero, and leaves both sides of `+` as they were."""
    parts = [filled(make, *pictures(2, seed)) for seed in range(3)]
    a, b, c = parts
    before = a.stats
    assert ((a + b) + c).stats == (a + (b + c)).stats, "not associative"
    assert (a + b).stats == (b + a).stats, "not commutative"
    assert (a + make()).stats == (make() + a).stats == a.stats == before, "the empty metric is no zero"
    z, y = (torch.cat(x) for x in zip(*(pictures(2, seed) for seed in range(3)), strict=True))
    assert (a + b + c).stats == filled(make, z, y).stats, "merged sums are not those of all rows"
    expect_error(InputError, "ignore_index is -100 here and 7 there", lambda: make().merge(make(ignore_index=7)))


def ignored_is_removed(make: MakeMetric) -> None:
    """Ignored images count for nothing, whatever they hold, be it by their label, `valid`, or a repeated sample id."""
    z, y = pictures()
    kept = filled(make, z[1:], y[1:]).stats
    for junk in (0.0, math.nan, math.inf, -math.inf):
        dirty = z.clone()
        dirty[0] = junk
        for ignore, dtype in ((-100, torch.int64), (255, torch.uint8), (-1, torch.int32)):
            labels = y.clone()
            labels[0] = ignore
            found = filled(make, dirty, labels.to(dtype), ignore_index=ignore)
            assert found.stats == kept, f"ignored rows that hold {junk} are not removed, ignore_index={ignore}"
        valid = torch.arange(len(y)) > 0
        assert filled(make, dirty, y, side={"valid": valid}).stats == kept, "valid=False is not removed"
    twice = torch.tensor([0, 1, 2, 3, 4, 5, 0, 3])
    once = filled(make, z, y).stats
    assert filled(make, z[twice], y[twice], side={"sample_id": twice}).stats == once, "a repeated sample id counts"


def nothing_is_no_number(make: MakeMetric) -> None:
    """Before any data, and of ignored rows only, the value is NaN and its estimate says so."""
    z, y = pictures()
    nothing = filled(make, z, torch.full_like(y, -100))
    assert math.isnan(make().compute()) and math.isnan(nothing.compute()), "a metric of nothing is NaN"
    found = nothing.estimate()
    assert found.n == 0 and math.isnan(found.low) and "no data" in found.verdict.lower(), "the estimate of nothing"


def soft_targets(make: MakeMetric) -> None:
    """One-hot probabilities as a target give the value of the labels; a row of zeros is ignored."""
    if make().whole:
        return
    z, y = pictures()
    q = one_hot(y, CLASSES, torch.float32)
    q[0, :, 0, 0] = 0
    y = y.clone()
    y[0, 0, 0] = -100
    found, wanted = filled(make, z, q).compute(), filled(make, z, y).compute()
    assert math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12), f"{found} from one-hot targets, not {wanted}"
    expect_error(InputError, "no class probabilities", lambda: make().update(z, q + 0.5))


def weights_count_rows(make: MakeMetric) -> None:
    """A row of weight 2 counts as two; one of weight 0 not at all."""
    if make().whole:
        return
    z, y = pictures()
    weight = torch.tensor([1.0, 2.0, 0.0, 1.0, 3.0, 1.0])
    times = weight.long()
    found = filled(make, z, y, side={"sample_weight": weight}).compute()
    wanted = filled(make, z.repeat_interleave(times, 0), y.repeat_interleave(times, 0)).compute()
    assert math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9), f"{found} by weights, {wanted} by repeated rows"
    wrong = torch.full((len(y),), -1.0)
    expect_error(InputError, "sample_weight must be finite", lambda: make().update(z, y, sample_weight=wrong))


def probabilities_have_their_own_door(make: MakeMetric) -> None:
    """`inputs="probs"` takes the softmax of the logits; anything else is refused there."""
    z, y = pictures()
    p = z.double().softmax(1)
    found, wanted = filled(make, p, y, inputs="probs").compute(), filled(make, z.double(), y).compute()
    assert math.isclose(found, wanted, rel_tol=1e-6, abs_tol=1e-9), f"{found} from probabilities, {wanted} from logits"
    expect_error(InputError, "inputs='probs', but input has", lambda: make(inputs="probs").update(z, y))
    p[0, 0, 0, 0] = math.nan
    expect_error(InputError, "1 NaN", lambda: make(inputs="probs").update(p, y))


def what_cannot_be_meant_is_refused(make: MakeMetric) -> None:
    """Labels out of range and logits that are no numbers, in words; and nothing of such a batch is added."""
    z, y = pictures()
    metric = filled(make, z, y)
    before = metric.stats
    wrong = y.clone()
    wrong[1, 2, 3] = 255
    expect_error(InputError, "did you mean ignore_index=255?", lambda: metric.update(z, wrong))
    dirty = z.clone()
    dirty[1, :, 2, 3] = math.nan
    expect_error(InputError, "first at [1, 2, 3]", lambda: metric.update(dirty, y))
    assert metric.stats is before, "a refused batch left something behind"


def state_comes_back(make: MakeMetric) -> None:
    """Through `torch.save` and a load that unpickles nothing, units included."""
    z, y = pictures()
    metric = filled(make, z, y, side={"unit": ["a", "b", "c", "a", "b", "c"]})
    file = io.BytesIO()
    torch.save(metric.state_dict(), file)
    file.seek(0)
    twin = make()
    twin.load_state_dict(torch.load(file, weights_only=True))
    assert twin.stats == metric.stats and _same(twin.compute(), metric.compute()), "the state did not come back"
    assert twin.estimate() == metric.estimate() or math.isnan(metric.estimate().low), "the interval did not come back"


def one_process_is_all(make: MakeMetric) -> None:
    """`sync` without other processes changes nothing."""
    metric = filled(make, *pictures(), side={"unit": torch.arange(6)})
    assert metric.sync().stats == metric.stats, "sync changed the sums"
    assert repr(metric.sync().estimate()) == repr(metric.estimate()), "sync changed the interval"


def an_estimate_is_whole(make: MakeMetric) -> None:
    """The value, an interval that is one, and words; also by units."""
    z, y = pictures(40)
    for side in ({}, {"unit": torch.arange(40)}):
        metric = filled(make, z, y, side=side)
        found = metric.estimate()
        assert found.value == metric.compute() and found.n > 0, "the estimate has another value"
        assert found.low <= found.high, f"the interval is {found.low} to {found.high}"
        assert found.verdict and found.definition == metric.definition, "no verdict, or another definition"


def one_call_evaluates_once(make: MakeMetric) -> None:
    """Calling neither uses nor touches what was gathered, and leaves the caller's tensors alone."""
    z, y = pictures()
    kept = z.clone(), y.clone()
    metric = filled(make, *pictures(2, seed=9))
    before = metric.stats
    assert _same(metric(z, y), filled(make, z, y).compute()) and metric.stats is before, "calling touched the sums"
    assert torch.equal(z, kept[0]) and torch.equal(y, kept[1]), "the caller's tensors changed"


def perfect_is_best(make: MakeMetric) -> None:
    """Sure and right everywhere is as good as it gets: 0 where low is good, 1 where high is; or there is no value."""
    _, y = pictures()
    value = make()(1e4 * one_hot(y, CLASSES, torch.float32), y)
    best = {"low": 0.0, "high": 1.0}.get(make().goal, value)
    assert math.isnan(value) or abs(value - best) <= 1e-9, f"{value} for a perfect model"


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


METRIC_CHECKS = (
    any_partition_gives_the_same_bits,
    sums_merge,
    ignored_is_removed,
    nothing_is_no_number,
    soft_targets,
    weights_count_rows,
    probabilities_have_their_own_door,
    what_cannot_be_meant_is_refused,
    state_comes_back,
    one_process_is_all,
    an_estimate_is_whole,
    one_call_evaluates_once,
    perfect_is_best,
)
