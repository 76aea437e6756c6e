"""Every metric against a slow one written from its definition, in float64, and against numbers of released code."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from confide.metrics import (
    AUPR,
    AURC,
    AUROC,
    EAURC,
    ECE,
    FPR95,
    HD95,
    MCE,
    MMCE,
    RMSCE,
    Accuracy,
    AdaptiveECE,
    BalancedAccuracy,
    Brier,
    ClasswiseECE,
    DebiasedECE,
    Dice,
    KernelCE,
    KSError,
    LogitStats,
    MeanIoU,
    MeanOver,
    SignedGap,
    SmoothECE,
    ThresholdedACE,
    protocol,
)

GOLDEN = Path(__file__).parent.parent / "golden" / "metrics_classification_subset.npz"
SETS = ["M1_random", "M2_overconfident", "M3_underconfident", "M4_binary"]
B = 15


def draw(items=300, classes=5, seed=0):
    rng = np.random.default_rng(seed)
    z = 2 * rng.standard_normal((items, classes))
    p = softmax(z / 1.4)
    y = np.array([rng.choice(classes, p=row) for row in p])
    return z, y


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def top(z, y):
    p = softmax(z)
    return p.max(1), (p.argmax(1) == y).astype(float)


def bins(confidence, hit, count=B):
    """(share, accuracy - confidence, rows) of every bin that holds something."""
    found = []
    for k in range(count):
        inside = (confidence > k / count) & (confidence <= (k + 1) / count)
        if inside.any():
            found.append((inside.mean(), hit[inside].mean() - confidence[inside].mean(), inside.sum()))
    return found


def rmsce(z, y):
    return math.sqrt(sum(share * gap**2 for share, gap, _ in bins(*top(z, y))))


def mce(z, y):
    return max(abs(gap) for _, gap, _ in bins(*top(z, y)))


def classwise(z, y):
    p = softmax(z)
    return np.mean(
        [sum(w * abs(gap) for w, gap, _ in bins(p[:, k], (y == k).astype(float))) for k in range(p.shape[1])]
    )


def equal_parts(confidence, hit, count=B):
    order = np.argsort(confidence, kind="stable")
    return [part for part in np.array_split(order, count) if len(part)], confidence, hit


def adaptive(z, y):
    parts, c, a = equal_parts(*top(z, y))
    return sum(len(part) * abs(a[part].mean() - c[part].mean()) for part in parts) / len(y)


def debiased(z, y):
    parts, c, a = equal_parts(*top(z, y))
    total = 0.0
    for part in parts:
        if len(part) > 1:
            noise = a[part].mean() * (1 - a[part].mean()) / (len(part) - 1)
            total += len(part) / len(y) * ((a[part].mean() - c[part].mean()) ** 2 - noise)
    return math.sqrt(max(total, 0.0))


def tace(z, y, threshold=0.01):
    p, total = softmax(z), 0.0
    for k in range(p.shape[1]):
        above = p[:, k] > threshold
        parts, c, a = equal_parts(p[above, k], (y[above] == k).astype(float))
        total += sum(len(part) * abs(a[part].mean() - c[part].mean()) for part in parts) / above.sum()
    return total / p.shape[1]


def ks(z, y):
    c, a = top(z, y)
    return max(abs(np.sum((c - a)[c <= t])) for t in c) / len(c)


def mmce(z, y):
    c, a = top(z, y)
    total = sum(
        (c[i] - a[i]) * (c[j] - a[j]) * math.exp(-abs(c[i] - c[j]) / 0.4) for i in range(len(c)) for j in range(len(c))
    )
    return math.sqrt(total) / len(c)


def smooth(z, y):
    """By the kernel itself with its mirror images, at the width that ten halvings find."""
    c, a = top(z, y)
    t = np.linspace(0, 1, 801)

    def error(width):
        images = [c + 2 * k for k in (-2, -1, 0, 1, 2)] + [2 * k - c for k in (-2, -1, 0, 1, 2)]
        kernel = sum(np.exp(-((t[:, None] - m) ** 2) / (2 * width**2)) for m in images)
        mean = (kernel / (width * math.sqrt(2 * math.pi)) * (c - a)).mean(1)
        return np.trapezoid(np.abs(mean), t)

    low, high = 0.0, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if middle < error(middle) else (low, middle)
    return error(high)


def aurc(z, y):
    c, a = top(z, y)
    wrong = 1 - a[np.argsort(-c, kind="stable")]
    return np.mean(np.cumsum(wrong) / np.arange(1, len(wrong) + 1))


def eaurc(z, y):
    r = 1 - top(z, y)[1].mean()
    return aurc(z, y) - (r + (1 - r) * math.log(1 - r))


def auroc(z, y):
    c, a = top(z, y)
    good, bad = c[a == 1], c[a == 0]
    return np.mean([(g > b) + (g == b) / 2 for g in good for b in bad])


def aupr(z, y):
    c, a = top(z, y)
    found, total = 0.0, int((a == 0).sum())
    for t in np.unique(c):
        below = c <= t
        gained = ((c == t) & (a == 0)).sum() / total
        found += gained * (1 - a[below]).mean()
    return found


def fpr95(z, y):
    c, a = top(z, y)
    for t in np.unique(c)[::-1]:
        if (c[a == 1] >= t).mean() >= 0.95:
            return (c[a == 0] >= t).mean()
    return math.nan


def brier(z, y):
    return ((softmax(z) - np.eye(z.shape[1])[y]) ** 2).sum(1).mean()


def skce(z, y):
    p = softmax(z)
    gap = np.eye(z.shape[1])[y] - p
    distance = np.sqrt(((p[:, None] - p) ** 2).sum(-1))
    width = np.sort(distance.reshape(-1))[(distance.size - 1) // 2]
    h = np.exp(-distance / width) * (gap @ gap.T)
    return (h.sum() - np.trace(h)) / (len(y) * (len(y) - 1))


def balanced(z, y):
    return np.mean([(z.argmax(1)[y == k] == k).mean() for k in np.unique(y)])


def overlap(z, y, double):
    guess, values = z.argmax(1), []
    for k in range(z.shape[1]):
        both, either = ((guess == k) & (y == k)).sum(), ((guess == k) | (y == k)).sum()
        values.append(2 * both / ((guess == k).sum() + (y == k).sum()) if double else both / either)
    return np.mean(values)


def beyond(z, y):
    return np.mean([(row.max() - np.delete(row, row.argmax()) > 10 / 4).mean() for row in z])


ORACLES = [
    (RMSCE(), rmsce),
    (MCE(), mce),
    (SignedGap(), lambda z, y: np.mean(top(z, y)[0] - top(z, y)[1])),
    (AdaptiveECE(), adaptive),
    (ClasswiseECE(), classwise),
    (ThresholdedACE(), tace),
    (DebiasedECE(), debiased),
    (KSError(), ks),
    (MMCE(), mmce),
    (AURC(), aurc),
    (EAURC(), eaurc),
    (AUROC(), auroc),
    (AUPR(), aupr),
    (FPR95(), fpr95),
    (Brier(), brier),
    (KernelCE(), skce),
    (BalancedAccuracy(), balanced),
    (MeanIoU(), lambda z, y: overlap(z, y, False)),
    (Dice(), lambda z, y: overlap(z, y, True)),
    (LogitStats(margin=2.5), beyond),
    (Accuracy(top=2), lambda z, y: np.mean([y[i] in np.argsort(-z[i])[:2] for i in range(len(y))])),
]


@pytest.mark.parametrize(("metric", "oracle"), ORACLES, ids=lambda x: getattr(x, "__name__", type(x).__name__))
@pytest.mark.parametrize("seed", [0, 1])
def test_against_the_definition(metric, oracle, seed):
    z, y = draw(seed=seed)
    assert metric(torch.from_numpy(z), torch.from_numpy(y)) == pytest.approx(oracle(z, y), abs=1e-8)


@pytest.mark.parametrize("seed", [0, 1])
def test_smooth_ece_against_the_definition(seed):
    z, y = draw(seed=seed)
    assert SmoothECE()(torch.from_numpy(3 * z), torch.from_numpy(y)) == pytest.approx(smooth(3 * z, y), abs=2e-5)


@pytest.mark.parametrize("name", SETS)
def test_against_released_code(name):
    with np.load(GOLDEN) as file:
        golden = {key.split("/", 1)[1]: file[key] for key in file.files if key.startswith(name)}
    z, y = torch.from_numpy(golden["logits"]), torch.from_numpy(golden["labels"])
    wanted = {
        **{f"focalcal/AdaptiveECELoss_{b}": AdaptiveECE(bins=b, ties="released") for b in (10, 15, 25)},
        **{f"focalcal/ClasswiseECELoss_{b}": ClasswiseECE(bins=b) for b in (10, 15)},
        "focalcal/l2_error_15": RMSCE(),
        "focalcal/maximum_calibration_error_10": MCE(bins=10),
        "torchmetrics/l2_15": RMSCE(),
        "torchmetrics/max_15": MCE(),
        "mdcarepo/BrierScore": Brier(),
        "mdcarepo/SCELoss_15": ClasswiseECE(),
        "mdcarepo/MCELoss_15": MCE(),
        "gce/SCE_15": ClasswiseECE(),
        "verified/top_l2_debiased": DebiasedECE(),
        "verified/ece_em_15": AdaptiveECE(),
        "spline_repo/KS_top": KSError(),
    }
    for key, metric in wanted.items():
        assert metric(z, y) == pytest.approx(float(golden[key].reshape(-1)[0]), abs=1e-6), key
    assert AURC()(z, y) == pytest.approx(golden["crl/aurc_eaurc"][0], abs=1e-12)
    assert EAURC()(z, y) == pytest.approx(golden["crl/aurc_eaurc"][1], abs=1e-12)
    assert AUPR()(z, y) == pytest.approx(golden["crl/aupr_fpr95"][0], abs=1e-12)
    assert FPR95(at="closest")(z, y) == pytest.approx(golden["crl/aupr_fpr95"][1], abs=1e-12)


def test_smooth_ece_near_the_authors_code():
    """Theirs cuts the kernel off at half its range and counts a confidence of exactly 0 or 1 half; see the docs."""
    with np.load(GOLDEN) as file:
        for name, close in (("M1_random", 3e-6), ("M3_underconfident", 1e-4), ("M4_binary", 1e-4)):
            z, y = (torch.from_numpy(file[f"{name}/{what}"]) for what in ("logits", "labels"))
            assert SmoothECE()(z, y) == pytest.approx(float(file[f"{name}/relplot/smECE"][0]), abs=close)


def test_the_parts_of_the_brier_score():
    z, y = draw(2000)
    metric = Brier(bins=15)
    metric.update(torch.from_numpy(z), torch.from_numpy(y))
    parts = metric.parts()
    total = parts["reliability"] - parts["resolution"] + parts["uncertainty"] + parts["within"]
    assert total == pytest.approx(brier(z, y), abs=1e-8)
    frequency = np.bincount(y, minlength=5) / len(y)
    assert parts["uncertainty"] == pytest.approx((frequency * (1 - frequency)).sum(), abs=1e-8)
    constant = torch.tensor([[0.2, 0.3, 0.5]]).repeat(100, 1)  # all equal within a bin: Murphy's three terms are all
    once = Brier(bins=15, inputs="probs")
    once.update(constant, torch.arange(100) % 3)
    assert once.parts()["within"] == pytest.approx(0, abs=1e-6)


def test_identities():
    z, y = (torch.from_numpy(x) for x in draw(700))
    gap, ece, mce_ = abs(SignedGap()(z, y)), ECE()(z, y), MCE()(z, y)
    assert gap <= ece <= mce_
    assert gap <= AdaptiveECE()(z, y)
    assert ECE(bins=1)(z, y) == pytest.approx(gap, abs=1e-9)
    assert KSError()(z, y) <= ece + 1 / 15
    assert ece <= RMSCE()(z, y) <= mce_
    order = torch.cat((torch.full((90, 1), 9.0), torch.linspace(2.5, 0.5, 10)[:, None]))
    ranked = torch.cat((order, torch.zeros(100, 1)), 1)
    labels = torch.tensor([0] * 90 + [1] * 10)
    assert EAURC()(ranked, labels) < 1e-3
    assert AUROC()(ranked, labels) == AUPR()(ranked, labels) == 1.0


def test_equal_mass_bins_lose_nobody():
    """A constant predictor with a gap of 0.32: released code says 0, and so does the setting that repeats it."""
    p = torch.tensor([[0.82, 0.18]], dtype=torch.float64).repeat(200, 1)
    y = torch.arange(200) % 2
    assert AdaptiveECE(inputs="probs")(p, y) == pytest.approx(0.32, abs=1e-9)
    assert AdaptiveECE(inputs="probs", ties="released")(p, y) == 0.0
    metric = AdaptiveECE(inputs="probs")
    metric.update(p, y)
    assert sum(row["count"] for row in metric.bins()) == 200


def test_absent_classes_and_exact_zeros_count():
    p = torch.tensor([[1.0, 0.0, 0.0]]).repeat(6, 1)
    assert ClasswiseECE(inputs="probs")(p, torch.tensor([1, 1, 1, 1, 1, 1])) == pytest.approx(2 / 3)


def test_hd95_counts_a_missed_object_as_the_diagonal():
    pytest.importorskip("monai")
    y = torch.zeros(1, 20, 20, dtype=torch.long)
    y[0, 5:10, 5:10] = 1
    z = torch.zeros(1, 2, 20, 20)
    z[:, 0] = 1.0
    assert HD95()(z, y) == pytest.approx(math.hypot(19, 19))
    assert math.isnan(HD95()(z, torch.zeros_like(y)))
    z[0, 1, 5:10, 5:12] = 2.0  # two columns too many: the farthest border pixels lie 2 apart
    assert HD95(spacing=(1.0, 3.0))(z, y) == pytest.approx(6.0)


def test_pooled_pixels_and_the_mean_over_images_are_two_numbers():
    generator = torch.Generator().manual_seed(0)
    z = 2 * torch.randn((5, 3, 8, 8), generator=generator, dtype=torch.float64)
    y = torch.randint(3, (5, 8, 8), generator=generator)
    means = [ECE()(z[i : i + 1], y[i : i + 1]) for i in range(5)]
    assert MeanOver(ECE())(z, y) == pytest.approx(sum(means) / 5, abs=1e-9)
    assert ECE()(z, y) != pytest.approx(sum(means) / 5, abs=1e-3)


def test_the_papers_protocol_is_that_of_their_batches():
    generator = torch.Generator().manual_seed(0)
    z = 2 * torch.randn((6, 3, 8, 8), generator=generator, dtype=torch.float64)
    y = torch.randint(3, (6, 8, 8), generator=generator)
    y[0, :4] = 255
    with pytest.warns(UserWarning, match="depends on the batch size"):
        found = protocol("mbls-voc")
    parts = [(z[:4], y[:4]), (z[4:], y[4:])]
    for part in parts:
        for metric in found.values():
            metric.update(*part)
    inside = [(t > 0) & (t < 255) for _, t in parts]
    values = [ECE()(p, torch.where(keep, t, -100)) for (p, t), keep in zip(parts, inside, strict=True)]
    weights = [int(keep.sum()) for keep in inside]
    wanted = sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)
    assert found["ece"].compute() == pytest.approx(wanted, abs=1e-8)
    assert found["mean_iou"].compute() == MeanIoU(background=False, ignore_index=255)(z, y)
    volumes = protocol("mbls-medical")["ece"]
    for part in parts:
        volumes.update(*part)
    assert volumes.compute() == pytest.approx(sum(values) / 2, abs=1e-9)


def test_regions():
    y = torch.zeros(1, 7, 7, dtype=torch.long)
    y[0, 2:5, 2:5] = 1
    y[0, 0, 0] = 255
    z = torch.randn((1, 2, 7, 7), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    edge = torch.zeros_like(y, dtype=torch.bool)
    edge[0, 1:6, 1:6] = True
    edge[0, 3, 3] = False  # the only pixel of the square that sees nothing else
    for region, inside in (("foreground", y == 1), ("class:1", y == 1), ("boundary:1", edge)):
        wanted = ECE()(z, torch.where(inside, y, -100))
        assert ECE(region=region, ignore_index=255)(z, y) == wanted
    with pytest.raises(ValueError, match=r"region='edge' is unknown; it may be 'all'"):
        ECE(region="edge")


def test_out_of_distribution():
    z = torch.tensor([[4.0, 0.0], [3.0, 0.0], [0.5, 0.0], [0.1, 0.0]])
    out = torch.tensor([0, 0, 1, 1])
    assert AUROC(task="ood")(z, out) == 1.0
    assert AUROC(task="ood", score="entropy", positive="unsure")(z, out) == 1.0
    assert FPR95(task="ood", positive="unsure")(z, out) == 0.0
    with pytest.raises(ValueError, match="takes targets of 0"):
        AUROC(task="ood")(torch.zeros(2, 3), torch.tensor([0, 2]))
