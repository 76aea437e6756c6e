"""The demo's network and its training: paired, repeatable, and no side effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss, one_hot

from confide.data.split import Part, Split
from confide.models.mlp import MLP
from confide.study.demo import CONTENDERS, SEEDS, Setting, run
from confide.study.train import batches, fit, predict, steps


def small_model() -> nn.Module:
    return MLP(inputs=4, hidden=(8,), classes=3)


def small_part(size: int = 50) -> Part:
    generator = torch.Generator().manual_seed(7)
    images = torch.randn(size, 1, 2, 2, generator=generator)
    return Part(images, images.flatten(1)[:, :3].argmax(1))


def small_split() -> Split:
    return Split(small_part(), small_part(20), small_part(30), ("a", "b", "c"))


def squared(logits: Tensor, target: Tensor) -> Tensor:
    return mse_loss(logits, one_hot(target, 3).float())


def noisy(logits: Tensor, target: Tensor) -> Tensor:
    return cross_entropy(logits + torch.randn_like(logits), target)


def recorded(criterion: Callable[[Tensor, Tensor], Tensor], seen: list[Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def record(logits: Tensor, target: Tensor) -> Tensor:
        seen.append(torch.cat([logits.detach().flatten(), target]))
        return criterion(logits, target)

    return record


def weights(model: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def test_mlp_flattens_and_returns_raw_logits() -> None:
    model = MLP()
    images = torch.rand(5, 1, 28, 28)
    assert model(images).shape == (5, 10)
    assert torch.equal(model(images), model(images.flatten(1)))
    assert model(images).min() < 0


def test_mlp_has_the_layers_asked_for() -> None:
    widths = [(m.in_features, m.out_features) for m in MLP(6, (5, 4), 3).modules() if isinstance(m, nn.Linear)]
    assert widths == [(6, 5), (5, 4), (4, 3)]


def test_every_epoch_visits_every_row_once_in_a_new_order() -> None:
    rows = torch.cat(list(batches(10, 4, 2, seed=0)))
    assert Counter(rows[:10].tolist()) == Counter(rows[10:].tolist()) == Counter(range(10))
    assert rows[:10].tolist() != rows[10:].tolist()


@pytest.mark.parametrize("size", [8, 9, 10])
def test_steps_counts_batches(size: int) -> None:
    assert steps(size, 3, 2) == len(list(batches(size, 3, 2, seed=0)))


def test_same_seed_same_weights_and_other_seed_others() -> None:
    one, two, three = (
        weights(fit(small_model, cross_entropy, small_part(), epochs=2, lr=0.1, seed=s)) for s in (1, 1, 2)
    )
    assert torch.equal(one, two)
    assert not torch.equal(one, three)


def test_seed_and_not_the_random_state_fixes_the_first_weights() -> None:
    first = []
    for state, seed in ((0, 1), (9, 1), (0, 2)):
        torch.manual_seed(state)
        first.append(weights(fit(small_model, cross_entropy, small_part(), epochs=0, lr=0.1, seed=seed)))
    assert torch.equal(first[0], first[1])
    assert not torch.equal(first[0], first[2])


def test_dropout_is_repeatable() -> None:
    def model() -> nn.Module:
        return nn.Sequential(nn.Dropout(0.5), small_model())

    one, two = (weights(fit(model, cross_entropy, small_part(), epochs=2, lr=0.1)) for _ in range(2))
    assert torch.equal(one, two)


@pytest.mark.parametrize("other", [squared, noisy])
def test_runs_with_one_seed_are_paired(other: Callable[[Tensor, Tensor], Tensor]) -> None:
    seen: list[list[Tensor]] = [[], []]
    for record, criterion in zip(seen, (cross_entropy, other), strict=True):
        fit(small_model, recorded(criterion, record), small_part(), epochs=2, lr=0.1, batch_size=16, seed=3)
    assert torch.equal(seen[0][0], seen[1][0])  # the same weights see the same batch first
    assert not torch.equal(seen[0][1], seen[1][1])  # then the criteria part ways ...
    for first, second in zip(*seen, strict=True):
        assert torch.equal(first[-len(first) // 4 :], second[-len(second) // 4 :])  # ... on the same labels


def test_loss_goes_down_and_is_reported_every_step() -> None:
    log: list[tuple[int, float]] = []
    fit(small_model, cross_entropy, small_part(), epochs=30, lr=0.1, batch_size=16, on_step=lambda *x: log.append(x))
    assert [step for step, _ in log] == list(range(1, steps(50, 16, 30) + 1))
    assert sum(loss for _, loss in log[-4:]) < 0.5 * sum(loss for _, loss in log[:4])


def test_training_leaves_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    fit(small_model, noisy, small_part(), epochs=1, lr=0.1)
    assert torch.equal(before, torch.get_rng_state())


def test_predict_evaluates_in_batches_and_restores_the_mode() -> None:
    model = nn.Sequential(nn.Dropout(0.5), small_model())
    images = small_part().inputs
    logits = predict(model, images, batch_size=16)
    assert not logits.requires_grad
    assert model.training
    torch.testing.assert_close(logits, model.eval()(images).detach())


def test_demo_yields_every_method_for_every_seed_with_progress() -> None:
    shares: list[float] = []
    setting = Setting(hidden=(8,), epochs=2, batch_size=16)
    runs = list(run(small_split(), setting=setting, on_progress=lambda _method, _seed, share: shares.append(share)))
    assert [(r.method, r.seed) for r in runs] == [(method, seed) for seed in SEEDS for method in CONTENDERS]
    assert all(r.logits.shape == (30, 3) and r.labels.shape == (30,) for r in runs)
    assert len({r.logits.sum().item() for r in runs if r.seed == 0}) > 1
    assert shares == sorted(shares)
    assert len(shares) == len(runs) * steps(50, 16, 2)
    assert shares[-1] == pytest.approx(1.0)


def test_demo_gives_the_threads_back_between_runs() -> None:
    before = torch.get_num_threads()
    inside: set[int] = set()
    torch.set_num_threads(2)
    try:
        runs = run(
            small_split(),
            setting=Setting(hidden=(8,), epochs=1),
            on_progress=lambda *_: inside.add(torch.get_num_threads()),
        )
        next(runs)
        assert torch.get_num_threads() == 2
        assert inside == {1}
    finally:
        torch.set_num_threads(before)


def test_demo_evaluates_the_test_part_with_paired_networks() -> None:
    split, setting = small_split(), Setting(hidden=(8,), epochs=1)
    twins = {"one": cross_entropy, "two": cross_entropy}
    one, two = run(split, contenders=twins, seeds=[5], setting=setting)
    assert torch.equal(one.logits, two.logits)
    assert torch.equal(one.labels, split.test.targets)
