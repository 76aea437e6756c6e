"""Values against slow float64 oracles and against numbers of the papers' released code."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from confide.metrics import ECE, NLL, Accuracy
from confide.metrics.items import Items

TRIO = (Accuracy, ECE, NLL)  # what holds for all is in tests/conformance

GOLDEN = Path(__file__).parent.parent / "golden" / "metrics_classification_subset.npz"
SETS = ["M1_random", "M2_overconfident", "M3_underconfident", "M4_binary"]


def oracle_probs(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def oracle_ece(z: np.ndarray, y: np.ndarray, bins: int) -> float:
    p = oracle_probs(z)
    confidence, correct = p.max(1), p.argmax(1) == y
    total = 0.0
    for k in range(bins):
        inside = (confidence > k / bins) & (confidence <= (k + 1) / bins)
        if inside.any():
            total += inside.mean() * abs(correct[inside].mean() - confidence[inside].mean())
    return total


def oracle_nll(z: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(oracle_probs(z)[np.arange(len(y)), y]).mean())


def oracle_accuracy(z: np.ndarray, y: np.ndarray) -> float:
    return sum(int(np.argmax(row) == label) for row, label in zip(z, y, strict=True)) / len(y)


def draw(items: int, classes: int, seed: int = 0, scale: float = 2.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    z = scale * torch.randn(items, classes, generator=generator, dtype=torch.float64)
    return z, torch.distributions.Gumbel(0.0, 1.0).sample(z.shape).add(z / 2).argmax(1)


@pytest.mark.parametrize("classes", [2, 3, 10, 15, 16, 17, 100])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-9), (torch.float32, 1e-6)])
def test_against_the_oracles(classes, dtype, close):
    z, y = draw(2000, classes)
    z = z.to(dtype)
    exact, labels = z.double().numpy(), y.numpy()
    assert Accuracy()(z, y) == oracle_accuracy(exact, labels)
    assert NLL()(z, y) == pytest.approx(oracle_nll(exact, labels), abs=close)
    for bins in (1, 10, 15, 20, 25, 30):
        assert ECE(bins=bins)(z, y) == pytest.approx(oracle_ece(exact, labels, bins), abs=close)


@pytest.mark.parametrize("name", SETS)
def test_against_the_released_code(name):
    with np.load(GOLDEN) as file:
        golden = {key.split("/", 1)[1]: file[key] for key in file.files if key.startswith(name)}
    z, y = torch.from_numpy(golden["logits"]), torch.from_numpy(golden["labels"])
    for bins in (10, 15, 25):
        assert ECE(bins=bins)(z, y) == pytest.approx(float(golden[f"focalcal/ECELoss_{bins}"][0]), abs=1e-6)
    ten, fifteen = ECE(bins=10)(z, y), ECE(bins=15)(z, y)
    assert ten == pytest.approx(float(golden["focalcal/expected_calibration_error_10"]), abs=1e-9)
    assert fifteen == pytest.approx(float(golden["mdcarepo/ECELoss_15"]), abs=1e-9)
    assert fifteen == pytest.approx(float(golden["verified/ece_15"]), abs=1e-9)
    assert fifteen == pytest.approx(float(golden["crl/ece15"]), abs=1e-6)
    assert NLL()(z, y) == pytest.approx(float(golden["crl/nll_brier"][0]), abs=1e-6)
    assert Accuracy()(z, y) == oracle_accuracy(golden["logits"], golden["labels"])


@pytest.mark.parametrize("classes", [2, 19])
def test_perfect_and_worst(classes):
    y = torch.arange(200) % classes
    right = 1e4 * torch.nn.functional.one_hot(y, classes).float()
    wrong = right.roll(1, 1)
    assert (Accuracy()(right, y), NLL()(right, y), ECE()(right, y)) == (1.0, 0.0, 0.0)
    assert (Accuracy()(wrong, y), NLL()(wrong, y), ECE()(wrong, y)) == (0.0, 1e4, 1.0)


def test_one_bin_is_the_gap_between_mean_confidence_and_accuracy():
    z, y = draw(777, 5)
    mean = oracle_probs(z.numpy()).max(1).mean()
    assert ECE(bins=1)(z, y) == pytest.approx(abs(mean - Accuracy()(z, y)), abs=1e-9)


def test_ties_go_to_the_lowest_class():
    z = torch.tensor([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0], [5.0, 5.0, 5.0]])
    assert Accuracy()(z, torch.tensor([0, 1, 0])) == 1.0
    assert Accuracy()(z, torch.tensor([1, 2, 2])) == 0.0


def test_logits_that_round_to_one_probability_are_no_tie():
    z = torch.tensor([[-1e-8, 0.0]])
    items = Items(z.t().contiguous(), torch.tensor([1]), 0, probs=False)
    assert items.p[0] == items.p[1]
    assert Accuracy()(z, torch.tensor([1])) == 1.0
    assert int(items.guess) == 1


def test_a_label_of_probability_zero_costs_infinitely_much():
    z = torch.tensor([[0.0, float("-inf")], [0.0, 0.0]])
    assert NLL()(z, torch.tensor([1, 0])) == math.inf
    assert NLL()(z, torch.tensor([0, 0])) == pytest.approx(math.log(2) / 2)
    assert ECE()(z, torch.tensor([0, 0])) == 0.25


def test_the_table_is_the_metric():
    z, y = draw(500, 10)
    metric = ECE(bins=20)
    metric.update(z, y)
    rows = metric.bins()
    full = [row for row in rows if row["count"]]
    assert len(rows) == 20
    assert sum(row["count"] for row in rows) == 500
    gaps = [row["count"] / 500 * abs(row["accuracy"] - row["confidence"]) for row in full]
    assert sum(gaps) == pytest.approx(metric.compute(), abs=1e-12)
    assert all(row["lower"] < row["confidence"] <= row["upper"] for row in full)
    empty = [row for row in rows if not row["count"]]
    assert empty
    assert all(row["confidence"] is None and row["accuracy"] is None for row in empty)


def test_one_pass_serves_every_number_of_bins():
    z, y = draw(500, 10)
    metric = ECE()
    metric.update(z, y)
    for bins in (1, 10, 25, 7200):
        assert ECE(bins=bins).value(metric.stats) == ECE(bins=bins)(z, y)
        assert len(ECE(bins=bins).bins(metric.stats)) == bins


def test_before_any_data():
    for kind in TRIO:
        assert math.isnan(kind().compute())
        assert math.isnan(kind()(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)))
        assert kind().stats is None
    assert ECE().bins() == []


@pytest.mark.parametrize("kind", TRIO)
def test_each_metric_says_what_it_is(kind):
    assert kind.definition.endswith(".")
    assert eval(repr(kind()), {kind.__name__: kind}).settings() == kind().settings()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_classes_are_counted_as_few_are(dtype):
    """With many classes the first bin holds what the others do not; the sums are those of counting every one."""
    from confide.metrics.classes import _cells, _mostly_low, tally_of

    z = 3 * torch.randn(500, 60, generator=torch.Generator().manual_seed(0)).to(dtype)
    p = torch.cat((z.softmax(1), torch.eye(60, dtype=dtype), torch.full((1, 60), 1 / 60, dtype=dtype)))
    p[-1, :15] = 1 / 15
    for bins in (2, 10, 15, 20):
        items = Items(p, torch.zeros(len(p), dtype=torch.int64), 1, probs=True)
        count, total = _mostly_low(items, bins)
        wanted = tally_of(*_cells(items, bins), 60 * bins)
        assert torch.equal(count, wanted[0])
        assert total.units() == wanted[1].units()
