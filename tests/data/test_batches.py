"""Parts, streams and their batches: every row once, repeatable, and a subject in one part only."""

import itertools

import numpy as np
import pytest
import torch

from confide.data.batches import batches, count
from confide.data.split import Part, Split, Stream
from confide.data.splitting import by_unit, held_out, held_out_by_class, rows_of, shuffled


def part(size=10, units=()):
    return Part(torch.arange(size * 3, dtype=torch.float32).view(size, 3), torch.arange(size) % 3, units)


def noisy(item, generator):
    noise = 0.0 if generator is None else generator.random()
    return torch.tensor([float(item), noise]), torch.tensor(item % 3)


def stream(size=10):
    return Stream(tuple(range(size)), noisy, torch.arange(size) % 3)


@pytest.mark.parametrize("make", [part, stream])
def test_a_pass_has_every_row_once_with_its_target_and_number(make):
    found = list(batches(make(), 4, seed=3))
    index = torch.cat([b.rows for b in found])
    assert sorted(index.tolist()) == list(range(10)) != index.tolist()
    assert torch.equal(torch.cat([b.targets for b in found]), index % 3)
    scale = 3 if make is part else 1
    assert torch.equal(torch.cat([b.inputs for b in found])[:, 0], scale * index.float())
    assert [len(b.rows) for b in found] == [4, 4, 2]
    assert count(make(), 4) == 3


def test_without_a_seed_rows_come_in_order():
    assert torch.cat([b.rows for b in batches(part(), 3)]).tolist() == list(range(10))
    assert all(b.inputs[:, 1].eq(0).all() for b in batches(stream(), 3))


def test_epochs_and_seeds_differ_and_each_is_repeatable():
    def order(**how):
        return torch.cat([b.rows for b in batches(part(50), 7, **how)]).tolist()

    orders = [order(seed=s, epoch=e) for s, e in ((0, 0), (0, 1), (1, 0))]
    assert all(a != b for a, b in itertools.combinations(orders, 2))
    assert orders[1] == order(seed=0, epoch=1)


def test_drop_last_leaves_the_small_batch_out():
    assert [len(b.rows) for b in batches(part(), 4, drop_last=True)] == [4, 4]
    assert count(part(), 4, drop_last=True) == 2
    with pytest.raises(ValueError, match="a batch of 11 of 10 rows leaves none with drop_last"):
        next(batches(part(), 11, drop_last=True))


def jitter(inputs, targets, generator):
    return inputs + torch.rand(inputs.shape, generator=generator), targets


@pytest.mark.parametrize("make", [part, stream])
def test_a_restart_goes_on_with_the_same_bits(make):
    whole = list(batches(make(), 3, seed=5, epoch=2, steps=[jitter]))
    rest = list(batches(make(), 3, seed=5, epoch=2, steps=[jitter], start=2))
    assert len(rest) == len(whole) - 2
    for one, two in zip(whole[2:], rest, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_workers_change_no_bit():
    alone, helped = ([*batches(stream(6), 2, seed=1, workers=workers)] for workers in (0, 2))
    assert len({b.inputs[0, 1].item() for b in alone}) == 3
    for one, two in zip(alone, helped, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("workers", [0, 1])
def test_the_global_random_state_is_left_alone(workers):
    """Dropout depends on it, and a restart within an epoch must not shift it."""
    state = torch.get_rng_state()
    list(batches(stream(4), 2, seed=1, steps=[jitter], workers=workers))
    list(batches(part(4), 2, seed=1, steps=[jitter]))
    assert torch.equal(torch.get_rng_state(), state)


def test_small_targets_become_int64_and_soft_ones_stay():
    hard = Part(torch.zeros(2, 1), torch.tensor([0, 255], dtype=torch.uint8))
    assert next(batches(hard, 2)).targets.tolist() == [0, 255]
    assert next(batches(hard, 2)).targets.dtype == torch.int64
    assert next(batches(Part(torch.zeros(2, 1), torch.rand(2, 3)), 2)).targets.dtype == torch.float32


def test_rows_of_different_shapes_are_refused_in_words():
    ragged = Stream((1, 2), lambda item, _: (torch.zeros(item), torch.tensor(0)))
    with pytest.raises(
        ValueError, match=r"rows differ in shape: 2 has \(2,\), the first \(1,\). Give the reader a size"
    ):
        ragged.load()
    with pytest.raises(ValueError, match=r"rows of one batch differ in shape, \[\(1,\), \(2,\)\]: give a size"):
        next(batches(ragged, 2))


def test_a_subject_in_two_parts_is_refused():
    one, two, three = (part(2, (a, b)) for a, b in (("p1", "p2"), ("p2", "p3"), ("p4", "p5")))
    with pytest.raises(ValueError, match=r"'p2' is in both train and val \(1 such\)"):
        Split(one, two, three, ("a", "b", "c"))
    with pytest.raises(ValueError, match="'p2' is in both val and test"):
        Split(three, one, two, ("a", "b", "c"))
    assert (
        Split(one, three, three, ("a", "b", "c")).val is three
    )  # choosing on the test set has to be said, not slipped in
    with pytest.raises(ValueError, match="in both train and val"):
        Split(three, three, one, ("a", "b", "c"))


def test_labels_without_a_class_are_refused():
    with pytest.raises(ValueError, match=r"train has 3 labels outside \[0, 2\), such as 2, for 2 classes"):
        Split(part(), part(), part(), ("a", "b"))
    masks = Part(torch.zeros(1, 1, 2, 2), torch.tensor([[[0, 1], [255, 0]]]))
    assert Split(masks, masks, masks, ("a", "b"), ignore_index=255).ignore_index == 255
    with pytest.raises(ValueError, match="such as 255"):
        Split(masks, masks, masks, ("a", "b"))
    small = Part(masks.inputs, masks.targets.byte())
    assert Split(small, small, small, tuple(map(str, range(256))), ignore_index=9).classes[-1] == "255"
    with pytest.raises(ValueError, match=r"train has 1 labels outside .* such as 255"):
        Split(small, small, small, ("a", "b"), ignore_index=256)


def test_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="3 rows but 1 units"):
        part(3, ("a",))
    with pytest.raises(ValueError, match="2 items but 3 labels"):
        Stream((1, 2), noisy, torch.zeros(3))


@pytest.mark.parametrize("make", [part, stream])
def test_take_keeps_rows_labels_and_units_together(make):
    whole = make()
    whole = type(whole)(*[getattr(whole, f) for f in whole.__dataclass_fields__][:-1], tuple("abcdefghij"))
    some = whole.take([7, 2])
    assert some.units == ("h", "c")
    assert next(batches(some, 2)).targets.tolist() == [1, 2]


def test_held_out_is_the_released_split():
    """The first tenth of numpy's shuffle with seed 1, whose first numbers are written down here."""
    indices = list(range(50_000))
    random = np.random.RandomState(1)
    random.shuffle(indices)
    stay, held = held_out(50_000, 0.1, seed=1)
    assert held.tolist() == indices[:5_000]
    assert stay.tolist() == indices[5_000:]
    assert shuffled(10, 1).tolist() == [2, 9, 6, 4, 0, 3, 1, 7, 8, 5]


def test_held_out_by_class_takes_the_same_number_of_each():
    labels = torch.tensor([0, 1, 2] * 20)
    stay, held = held_out_by_class(labels, 5, seed=0)
    assert sorted([*stay, *held]) == list(range(60))
    assert torch.bincount(labels[held]).tolist() == [5, 5, 5]
    np.random.seed(0)  # as the released code does it, class by class
    by_hand = [[i for i in range(60) if i % 3 == label] for label in range(3)]
    for rows in by_hand:
        np.random.shuffle(rows)
    assert held.tolist() == [row for rows in by_hand for row in rows[-5:]]
    with pytest.raises(ValueError, match="class 0 has 20 rows, of which 20 are to be held out"):
        held_out_by_class(labels, 20, seed=0)


def test_by_unit_keeps_units_whole():
    units = [f"p{i // 3}" for i in range(300)]
    parts = by_unit(units, (70, 10, 20), seed=4)
    owners = [{units[i] for i in rows} for rows in parts]
    assert [len(o) for o in owners] == [70, 10, 20]
    assert not set.intersection(*map(set, owners[:2])) | (owners[2] & (owners[0] | owners[1]))
    assert sorted(np.concatenate(parts)) == list(range(300))
    assert by_unit(units, (70, 10, 20), seed=4)[0].tolist() == parts[0].tolist()
    assert [len(rows) for rows in by_unit(list("abcde"), (70, 10, 20), seed=0)] == [3, 1, 1]
    with pytest.raises(ValueError, match=r"there are too few subjects for 3 parts: 2 \(a, b\)"):
        by_unit(["a", "b"], (1, 1, 1), seed=0)
    assert rows_of(["a", "b", "a"], ["a"]).tolist() == [0, 2]


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        held_out(10, share, seed=0)


def test_a_part_stays_on_its_device():
    there = part().to("meta")
    assert there.inputs.device.type == "meta"
    assert there.take([1, 2]).inputs.device.type == "meta"
    assert there.units == part().units
