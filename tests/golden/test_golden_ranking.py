"""The history and the ranking loss of CRL against four epochs of the released code."""

from pathlib import Path

import numpy as np
import pytest
import torch

from confide.losses import CRL

SINGLE = 1e-7  # the released code keeps margins in float32
EPOCHS = (1, 2, 3, 4)


@pytest.fixture(scope="module")
def released():
    with np.load(Path(__file__).parent / "crl_history_and_ranking.npz", allow_pickle=False) as arrays:
        return {key: torch.from_numpy(arrays[key]) for key in arrays if key != "meta_json"}


def after(released, epochs, **knobs):
    """Ours, behind so many epochs of the same batches."""
    criterion = CRL(size=12, **knobs)
    for epoch in EPOCHS[:epochs]:
        z, y, index = (released[f"ep{epoch}_{name}"] for name in ("logits", "labels", "idx"))
        criterion(z, y, index=index)
        criterion.epoch_end()
    return criterion


@pytest.mark.parametrize("epoch", EPOCHS)
def test_history(released, epoch):
    """How often each sample was right, and over what that is counted: whole epochs."""
    history = after(released, epoch).history
    assert torch.equal(history.right, (released[f"ep{epoch}_correctness_after"] * 65536).int())
    if epoch > 1:
        before = after(released, epoch - 1).history
        assert int(before.epochs) == int(released[f"ep{epoch}_max_correctness_before"])


@pytest.mark.parametrize("epoch", EPOCHS)
def test_margin_and_order(released, epoch):
    """The last pair is that of the last row and the first."""
    shares = after(released, epoch - 1).history.share(released[f"ep{epoch}_idx"], torch.float64)
    ahead = shares - shares.roll(-1)
    assert (ahead.abs() - released[f"ep{epoch}_margin"]).abs().max() <= SINGLE
    assert torch.equal(ahead.sign().float(), released[f"ep{epoch}_target"])


@pytest.mark.parametrize("fused", [False, "auto"], ids=["autograd", "one_pass"])
@pytest.mark.parametrize("epoch", EPOCHS)
def test_ranking_loss(released, epoch, fused):
    criterion = after(released, epoch - 1, fused=fused).penalty_only()
    z = released[f"ep{epoch}_logits"].clone().requires_grad_()
    value = criterion(z, released[f"ep{epoch}_labels"], index=released[f"ep{epoch}_idx"])
    value.backward()
    assert abs(value.detach() - released[f"ep{epoch}_rank_loss"]) <= SINGLE
    assert (z.grad - released[f"ep{epoch}_grad"]).abs().max() <= SINGLE
    assert (value.detach() == 0) == (epoch == 1)


def test_entropy_as_confidence(released):
    """Theirs is the negative entropy over its largest value, ours 1 more."""
    found = CRL(size=12, confidence="entropy")._confidence(released["ep1_logits"]).squeeze(1) - 1
    assert (found - released["neg_entropy_normalised"]).abs().max() <= 1e-12
