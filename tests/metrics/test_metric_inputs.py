"""Ignored rows count for nothing, numbers are never guessed, and what is refused is refused in words."""

import math

import pytest
import torch
from torch import Tensor

from confide.core.sums import Mean
from confide.metrics import ECE, NLL, Accuracy, Metric
from confide.metrics.estimate import Span
from confide.metrics.items import Items

TRIO = (Accuracy, ECE, NLL)  # what holds for all is in tests/conformance

NAN, INF = float("nan"), float("inf")
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


def draw(items: int = 300, classes: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(items, classes, generator=generator), torch.randint(0, classes, (items,), generator=generator)


def stats_of(metric, z: Tensor, y: Tensor):
    metric.update(z, y)
    return metric.stats


@pytest.mark.parametrize("kind", TRIO)
@pytest.mark.parametrize("ignore", [-100, -1, 255, 5, 0])  # 5 = C, 0 = a class
@pytest.mark.parametrize("junk", [NAN, INF, -INF, 1e30])
def test_ignored_is_removed_whatever_the_logits(kind, ignore, junk):
    z, y = draw()
    y[::3] = ignore
    keep = y != ignore
    removed = stats_of(kind(ignore_index=ignore), z[keep], y[keep])
    z[~keep] = junk
    assert stats_of(kind(ignore_index=ignore), z, y) == removed


@pytest.mark.parametrize("inputs", ["logits", "probs"])
def test_a_metric_never_sees_what_an_ignored_row_held(inputs):
    class Seen(Metric[Mean]):
        definition = "Keeps what it is shown."

        def observe(self, items: Items) -> Mean:
            shown.append(items)
            return Mean.of(items.y == 0, items.keep)

        def value(self, stats: Mean) -> float:
            return 0.0

        def blank(self, classes: int) -> Mean:
            return Mean.blank()

        def span(self, stats: Mean, clusters: list[Mean]) -> Span:
            return Span()

    shown: list[Items] = []
    metric = Seen(ignore_index=255, inputs=inputs)
    metric(torch.tensor([[0.75, 0.25], [NAN, INF]]).half(), torch.tensor([1, 255], dtype=torch.uint8))
    assert shown[0].x.dtype in (torch.float32, torch.float64)
    assert shown[0].y.tolist() == [1, -1]
    assert shown[0].x[:, 1].tolist() == [0.0, 0.0]


def test_a_metric_without_definition_is_refused_where_it_is_written():
    with pytest.raises(TypeError, match="Nameless needs a `definition`"):
        type("Nameless", (Metric,), {})


@pytest.mark.parametrize("kind", TRIO)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_any_integer_type_of_target(kind, dtype):
    z, y = draw()
    assert stats_of(kind(), z, y.to(dtype)) == stats_of(kind(), z, y)


@pytest.mark.parametrize("kind", TRIO)
@pytest.mark.parametrize("ignore", [5, 255])
def test_uint8_targets_with_an_ignored_label(kind, ignore):
    z, y = draw()
    y[:50] = ignore
    assert stats_of(kind(ignore_index=ignore), z, y.to(torch.uint8)) == stats_of(kind(), z[50:], y[50:])


@pytest.mark.parametrize("ignore", [-1, -100])
def test_an_ignored_label_below_zero_does_not_wrap_to_a_uint8_one(ignore):
    y = torch.tensor([0, 1, ignore % 256], dtype=torch.uint8)
    with pytest.raises(ValueError, match=rf"did you mean ignore_index={ignore % 256}\?"):
        ECE(ignore_index=ignore)(torch.zeros(3, 5), y)


@pytest.mark.parametrize("kind", TRIO)
def test_all_ignored_is_nan_and_none_means_nothing_is_ignored(kind):
    z, y = draw()
    assert math.isnan(kind()(z, torch.full_like(y, -100)))
    assert kind(ignore_index=None)(z, y) == kind()(z, y)
    with pytest.raises(ValueError, match="outside"):
        kind(ignore_index=None)(z, torch.full_like(y, -100))


def test_the_wording_for_labels_out_of_range():
    y = torch.zeros(4, 20, 40, dtype=torch.uint8)
    y[0, 3, 17:] = y[1:3, :10] = y[3, :9] = 255
    y[3, 9, :21] = 255
    y.view(-1)[torch.nonzero(y.view(-1) == 255)[1204:, 0]] = 0
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (the whole text is compared)
        ECE()(torch.zeros(4, 19, 20, 40), y)
    expected = "target has 1,204 values outside [0, 19) (e.g. 255 at [0, 3, 17]); did you mean ignore_index=255?"
    assert str(refused.value) == expected


def test_no_hint_when_several_labels_are_out_of_range():
    with pytest.raises(ValueError, match=r"target has 2 values outside \[0, 3\) .*; they range from -2 to 7"):
        NLL()(torch.zeros(3, 3), torch.tensor([0, 7, -2]))


@pytest.mark.parametrize("kind", TRIO)
@pytest.mark.parametrize("junk", [NAN, INF])
def test_kept_logits_must_be_numbers(kind, junk):
    z = torch.zeros(2, 3, 4, 5)
    z[1, 2, 3, 4] = junk
    with pytest.raises(ValueError, match=r"input has 1 kept item .*first at \[1, 3, 4\]"):
        kind()(z, torch.zeros(2, 4, 5, dtype=torch.int64))
    with pytest.raises(ValueError, match="1 kept item "):
        kind()(torch.full((3,), -INF), torch.tensor(0))


@pytest.mark.parametrize("kind", TRIO)
def test_a_refused_batch_adds_nothing(kind):
    z, y = draw()
    metric = kind()
    metric.update(z, y)
    before = metric.stats
    with pytest.raises(ValueError, match="outside"):
        metric.update(z, y + 1)
    assert metric.stats is before


def test_numbers_are_never_guessed():
    p = torch.rand(200, 4, generator=torch.Generator().manual_seed(0))
    p, y = p / p.sum(1, keepdim=True), torch.arange(200) % 4
    as_logits = torch.cat([p, 9 * p])
    assert ECE()(as_logits[:200], y) == ECE()(p.clone(), y) != ECE(inputs="probs")(p, y)
    assert NLL()(p, y) == pytest.approx(torch.nn.functional.cross_entropy(p.double(), y).item(), abs=1e-6)


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-6), (torch.float64, 1e-9)])
def test_the_door_for_probabilities(dtype, close):
    z, y = draw(classes=3)
    z = z.to(dtype)
    p = z.softmax(-1)
    assert Accuracy(inputs="probs")(p, y) == Accuracy()(z, y)
    assert NLL(inputs="probs")(p, y) == pytest.approx(NLL()(z, y), abs=close)
    assert ECE(inputs="probs")(p, y) == pytest.approx(ECE()(z, y), abs=close)
    assert ECE(inputs="probs", dim=-1)(p.reshape(10, 30, 3), y.reshape(10, 30)) == ECE(inputs="probs")(p, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bins", [10, 15, 20, 25])
def test_a_probability_on_an_edge_stays_in_the_bin_below(bins, dtype):
    for k in range(bins // 2 + 1, bins):
        p = torch.tensor([[k / bins, 1 - k / bins]], dtype=dtype)
        metric = ECE(bins=bins, inputs="probs")
        metric.update(p, torch.tensor([0]))
        assert [row["count"] for row in metric.bins()].index(1) == k - 1


def test_probabilities_exactly_zero_and_one():
    p = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0 + 1e-7, -1e-9]])
    assert ECE(inputs="probs")(p, torch.tensor([0, 1, 1])) == pytest.approx(1 / 3)
    assert NLL(inputs="probs")(p, torch.tensor([0, 1, 0])) == 0.0
    assert NLL(inputs="probs")(p, torch.tensor([0, 1, 1])) == INF


def test_rounded_half_precision_probabilities_are_taken():
    p = torch.randn(500, 30, generator=torch.Generator().manual_seed(0)).softmax(-1)
    y = torch.arange(500) % 30
    for dtype in (torch.bfloat16, torch.float16):
        assert ECE(inputs="probs")(p.to(dtype), y) == pytest.approx(ECE(inputs="probs")(p, y), abs=1e-2)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([1.38, -0.38], r"2 values outside \[0, 1\] \(min -0.38, max 1.38, first at \[2, 0\]\)"),
        ([NAN, 0.5], r"1 value outside \[0, 1\] \(1 NaN, first at \[2, 0\]\)"),
        ([0.5, 0.25], r"1 kept item whose probabilities do not sum to 1 \(min 0.75, max 0.75, first at \[2\]\)"),
        ([INF, 0.5], r"1 value outside \[0, 1\] \(min inf, max inf, first at \[2, 0\]\)"),
    ],
)
def test_what_is_no_probability_is_refused(row, words):
    p = torch.tensor([[0.5, 0.5], [0.1, 0.9], row, [1.0, 0.0]])
    with pytest.raises(ValueError, match=words + "; pass logits with inputs='logits'"):
        ECE(inputs="probs")(p, torch.tensor([0, 1, 0, 1]))
    assert ECE(inputs="probs")(p, torch.tensor([0, 1, -100, 0])) == pytest.approx(0.1 / 3 + 0.5 / 3, abs=1e-6)


@pytest.mark.parametrize(
    ("input", "target", "words"),
    [
        (torch.zeros(2, 3), torch.ones(2, 3), "2 rows that are no class probabilities"),
        (torch.zeros(2, 3), torch.zeros(2), r"class indices must be integers: target.long\(\)"),
        (torch.zeros(2, dtype=torch.int64), torch.zeros(2), "floating point tensor, got torch.int64"),
        ([[0.0]], torch.zeros(1), "floating point tensor, got list"),
        (torch.tensor(1.0), torch.tensor(0), "no class axis"),
        (torch.zeros(4, 1), torch.zeros(4, dtype=torch.int64), "one sigmoid output"),
        (torch.zeros(2, 4, 5, 3), torch.zeros(2, 4, 5, dtype=torch.int64), "pass dim=-1"),
        (torch.zeros(2, 3, 4, 5), torch.zeros(2, 1, 4, 5, dtype=torch.int64), r"target.squeeze\(1\)"),
        (
            torch.zeros(2, 3),
            torch.zeros(3, dtype=torch.int64),
            r"target of shape \(3,\) .* does not fit logits of shape \(2, 3\)",
        ),
    ],
)
def test_what_has_no_reading_is_refused(input, target, words):
    with pytest.raises(ValueError, match=words):
        ECE()(input, target)


def test_dim_must_exist():
    with pytest.raises(ValueError, match="dim=4 is not an axis"):
        ECE(dim=4)(torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64))


def test_the_callers_tensors_are_left_alone():
    z, y = draw()
    y[:9] = -100
    z.requires_grad_()
    for kind in TRIO:
        stats_of(kind(), z, y)
        stats_of(kind(inputs="probs"), z.softmax(-1), y)
    assert torch.equal(z, draw()[0])
    assert z.grad is None
    assert int((y == -100).sum()) == 9
