"""Faults that were found once."""

import torch

import confide


def test_label_relaxation_is_exactly_still_inside_its_set():
    """A residue of 1e-8 is enough for Adam to move converged weights."""
    y = torch.randint(10, (64,), generator=torch.Generator().manual_seed(0))
    z = torch.randn(64, 10, generator=torch.Generator().manual_seed(1)) * 0.3 + 100
    z[range(64), y] += 6
    for mode in ("auto", True, False):
        logits = z.clone().requires_grad_()
        criterion = confide.LabelRelaxation(alpha=0.1, fused=mode)
        criterion(logits, y).backward()
        assert not logits.grad.any(), mode


def test_small_losses_keep_their_digits_far_from_zero():
    z = torch.tensor([[12.0, 0, 0.5, 1]]) + 1000
    torchs = torch.nn.functional.cross_entropy(z, torch.tensor([0]))
    assert abs(confide.CrossEntropy()(z, torch.tensor([0])) / torchs - 1) < 1e-5


def test_empty_dense_batches():
    for shape in ((0, 5, 4, 4), (2, 5, 0, 4)):
        z = torch.zeros(shape, requires_grad=True)
        loss = confide.MbLS()(z, torch.zeros(shape[:1] + shape[2:], dtype=torch.long))
        loss.backward()
        assert loss == 0
        assert z.grad.shape == shape


def test_float16_gradients_wait_for_the_scale_of_a_grad_scaler():
    """A million pixels: divided before scaling, nearly all gradients would round to zero."""
    generator = torch.Generator().manual_seed(0)
    z = (torch.randn(1, 4, 1000, 250, generator=generator) * 3).half().requires_grad_()
    y = torch.randint(4, (1, 1000, 250), generator=generator)
    confide.MbLS()(z, y).mul(65536.0).backward()
    exact = z.detach().double().requires_grad_()
    confide.MbLS(fused=False)(exact, y).mul(65536.0).backward()
    assert (z.grad.double() - exact.grad).abs().max() / exact.grad.abs().max() < 1e-3
    assert (z.grad == 0).double().mean() < 1e-3


def test_a_knob_is_set_by_its_name_as_an_argument():
    criterion = confide.LabelSmoothing()
    criterion.smoothing = 0.3
    assert criterion.epsilon == 0.3
    assert callable(criterion.smoothing)
