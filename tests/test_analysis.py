"""What a loss does to a batch: shares, flips and distances, against counts by hand and by loops."""

import dataclasses
import math

import pytest
import torch

from confide import ACLS, CRL, MDCA, CrossEntropy, LabelSmoothing, MbLS
from confide.analysis import activity
from confide.analysis.spread import Histogram, distances
from confide.core.errors import InputError
from confide.losses import ALL
from confide.testing.samples import batch, soft

# Three rows, margin 5: no distance beyond it; one; all but the predicted class.
Z = torch.tensor([[3.0, 0.0, 1.0, 2.0], [7.0, 4.0, 1.0, 6.0], [0.0, 9.0, 1.0, 2.0]], dtype=torch.float64)
Y = torch.tensor([0, 3, 1])


def test_shares_are_counted_by_hand():
    seen = activity(MbLS(margin=5, strength=1.0, over="sum"), Z, Y)
    assert (seen.rows, seen.classes) == (3, 4)
    # Where it acts it pushes the far classes and, the other way, the predicted one: 0, 2 and 4 entries.
    assert seen.per_sample == (1, 0, 1, 0, 1)
    assert seen.entries == pytest.approx(6 / 12)
    assert seen.samples == pytest.approx(2 / 3)
    assert seen.distances.count == 9
    assert (seen.distances.margin, seen.distances.beyond) == (5.0, pytest.approx(4 / 9))
    assert seen.distances.at(0.5) == 3.0
    assert seen.distances.at(0.95) == 9.0


def test_penalties_are_clipped_into_the_bins_of_the_paper():
    # Beyond the margin lie 0, 0.95 and 3.95 + 2.95 + 1.95 = 8.85.
    seen = activity(MbLS(margin=5.05, strength=0.01, over="sum"), Z, Y)
    assert (seen.penalty.edges[0], seen.penalty.edges[-1]) == (0.0, pytest.approx(0.1))
    assert [i for i, n in enumerate(seen.penalty.counts) if n] == [0, 1, 17]
    wide = activity(MbLS(margin=5.05, strength=1.0, over="sum"), Z, Y, clip=(0.0, 2.0))
    assert [i for i, n in enumerate(wide.penalty.counts) if n] == [0, 9, 19]
    assert len(wide.penalty.counts) == 20


def test_a_step_flips_what_a_loop_over_rows_finds():
    z, y = batch((400, 5), torch.float64)
    z = z * 0.4
    for criterion in (CrossEntropy(), MbLS(margin=2.0, strength=5.0), ACLS(margin=2.0, top=0.5), MDCA(strength=50.0)):
        for step in (0.3, 1.0):
            (gradient,) = torch.autograd.grad(criterion(w := z.clone().requires_grad_(), y), w)
            flipped = lost = 0
            for before, slope, label in zip(z, len(y) * gradient, y, strict=True):
                after = int((before - step * slope).argmax())
                flipped += after != int(before.argmax())
                lost += int(before.argmax()) == int(label) != after
            seen = activity(criterion, z, y, step=step)
            assert (seen.flipped, seen.lost) == (pytest.approx(flipped / 400), pytest.approx(lost / 400))
    assert lost


def test_cross_entropy_alone_loses_nothing_that_was_right():
    z, y = batch((2000, 5), torch.float64)
    seen = activity(CrossEntropy(), z * 0.1, y, step=3.0)
    assert seen.flipped > 0
    assert (seen.lost, seen.entries, seen.samples) == (0, 0, 0)


def test_the_failure_of_the_paper_is_seen():
    # The prediction is right, its minimum far and its runner-up near: ACLS hands it to the runner-up.
    z, y = torch.tensor([[12.0, 11.9, -12.0]]), torch.tensor([0])
    assert activity(ACLS(margin=6), z, y).lost == 1
    assert activity(CrossEntropy(), z, y).lost == 0


def test_dense_is_flattened_and_ignored_is_removed():
    z, y = batch((2, 5, 3, 4))
    out = torch.rand(y.shape, generator=torch.Generator().manual_seed(0)) < 0.4
    dirty = torch.where(out.unsqueeze(1), math.nan, z)
    for criterion in (ACLS(ignore_index=255), LabelSmoothing(ignore_index=255)):
        dense = activity(criterion, dirty, y.masked_fill(out, 255))
        flat = activity(criterion, z.movedim(1, -1)[~out], y[~out])
        for field in dataclasses.fields(dense):
            mine, theirs = getattr(dense, field.name), getattr(flat, field.name)
            if field.name not in ("distances", "penalty"):
                assert mine == pytest.approx(theirs), field.name
        assert dense.distances.quantiles == pytest.approx(flat.distances.quantiles)
    last = activity(ACLS(dim=-1), z.movedim(1, -1).contiguous(), y)
    assert last == dataclasses.replace(activity(ACLS(), z, y), criterion=last.criterion)


def test_soft_targets_are_right_where_their_likeliest_class_is_predicted():
    z, y = batch((50, 5))
    q = soft(y, 5)
    seen = activity(ACLS(margin=2, top=5.0), z, q)
    hard = activity(ACLS(margin=2, top=5.0), z, y)
    assert seen.samples == hard.samples
    assert 0 <= seen.lost <= seen.flipped <= 1


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_method_can_be_looked_at(kind):
    criterion = kind.example()
    z, y = batch((2, 5, 3, 4), torch.float32)
    y[0, 0, 0] = -100
    seen = activity(criterion, z, y, **criterion.example_side(tuple(y.shape)))
    assert seen.rows == 23
    assert sum(seen.per_sample) == sum(seen.penalty.counts) == 23
    smooth = criterion.smoothing(z, y, **criterion.example_side(tuple(y.shape)))
    assert seen.entries == pytest.approx(smooth.C.sum().item() / (23 * 5), abs=1e-6)
    assert (seen.distances.margin is not None) == hasattr(criterion, "margin")
    assert len(str(seen).splitlines()) == 5


def test_side_tensors_are_handed_on():
    z, y = batch()
    criterion = CRL.example()
    with pytest.raises(InputError, match="index="):
        activity(criterion, z, y)
    assert activity(criterion, z, y, index=torch.arange(8)).rows == 8


def test_it_says_so_in_plain_words():
    assert str(activity(MbLS(margin=5, strength=1.0, over="sum"), Z, Y)) == (
        "MbLS(margin=5.0, strength=1.0, over='sum')\n"
        "3 samples, 4 classes.\n"
        "The penalty acts on 50.0% of all entries and in 66.7% of the samples, there on 2 of 4 classes in the median.\n"
        "A gradient step of 1 on the logits changes 33.33% of the predictions; 0.00% were right and are lost.\n"
        "Logit distances: half lie below 3.0, and 5% above 9.0; 44.4% lie beyond the margin of 5."
    )
    assert "in 0.0% of the samples.\n" in str(activity(CrossEntropy(), Z, Y))


def test_nothing_kept_is_said_and_does_not_fail():
    seen = activity(MbLS(), Z, torch.full_like(Y, -100))
    assert (seen.rows, sum(seen.per_sample), seen.distances.count) == (0, 0, 0)
    assert math.isnan(seen.samples)
    assert math.isnan(seen.distances.at(0.5))
    assert str(seen).endswith("Every sample is ignored: there is nothing to tell.")


def test_only_one_loss_of_ours_can_be_looked_at():
    for other in (torch.nn.CrossEntropyLoss(), MbLS() + ACLS().penalty_only()):
        with pytest.raises(InputError, match=r"activity looks at one loss of confide, got .*; of a sum pass one"):
            activity(other, Z, Y)
    assert activity(ACLS().penalty_only(), Z, Y).entries == activity(ACLS(), Z, Y).entries


def test_masked_classes_have_no_distance():
    z = Z.clone()
    z[0, 1] = -math.inf
    found = distances(z, torch.tensor([True, True, False]))
    assert found.count == 5
    assert found.margin is found.beyond is None
    assert max(found.histogram.edges) == 6.0


def test_a_histogram_keeps_what_lies_outside_in_its_end_bins():
    counted = Histogram.of(torch.tensor([-1.0, 0.0, 0.5, 0.99, 1.0, 7.0]), 0.0, 1.0, bins=2)
    assert counted == ((0.0, 0.5, 1.0), (2, 4))
    assert sum(Histogram.of(torch.tensor([2.0, 2.0]), 2.0, 2.0).counts) == 2


@pytest.mark.parametrize("options", [{"step": math.nan}, {"clip": (0.1, 0.0)}])
def test_steps_and_clips_that_cannot_be_meant(options):
    with pytest.raises(InputError, match="step must be finite and clip rise"):
        activity(MbLS(), Z, Y, **options)
