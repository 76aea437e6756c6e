"""Mixup, CutMix and colours, against their definitions pixel by pixel."""

import colorsys

import pytest
import torch

from confide.data.colour import BrightnessContrast, HueSaturationValue, to_hsv, to_rgb
from confide.data.mixing import CutMix, Mixup


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def constant(rows=8, size=10):
    """Row i holds the number i everywhere, and is of class i."""
    return torch.arange(float(rows)).view(-1, 1, 1, 1).expand(rows, 3, size, size).contiguous(), torch.arange(rows)


@pytest.mark.parametrize("step", [Mixup(8, alpha=1.0), CutMix(8, probability=1.0)])
def test_the_label_is_mixed_as_the_image_is(step):
    shares = set()
    for seed in range(20):
        images, labels = step(*constant(), generator(seed))
        assert labels.shape == (8, 8)
        torch.testing.assert_close(labels.sum(1), torch.ones(8))
        torch.testing.assert_close(images.mean((1, 2, 3)), labels @ torch.arange(8.0))
        shares.add(round(labels.max().item(), 4))
    assert len(shares) > 6


def test_mixup_blends_every_pixel_and_cutmix_none():
    blended, _ = Mixup(8, alpha=1.0)(*constant(), generator(1))
    assert (blended.flatten(1).std(1) < 1e-6).all()
    pasted, labels = CutMix(8, probability=1.0)(*constant(), generator(1))
    assert torch.equal(pasted, pasted.round())
    changed = pasted[:, 0] != constant()[0][:, 0]
    row = int(changed.flatten(1).sum(1).argmax())
    ys, xs = changed[row].nonzero().T
    box = changed[row, ys.min() : ys.max() + 1, xs.min() : xs.max() + 1]
    assert box.all()
    assert labels[row, row] == pytest.approx(1 - box.numel() / 100)


def test_the_share_follows_its_beta_distribution():
    """Beta(a, a) has mean 1/2 and variance 1 / (4 (2a + 1))."""
    pair = torch.tensor([[[[0.0]]], [[[1.0]]]]), torch.tensor([0, 1])
    for alpha in (0.4, 1.0):
        draws = [Mixup(2, alpha)(*pair, generator(seed)) for seed in range(2000)]
        shares = torch.stack([labels[0, 0] for _, labels in draws if labels[0, 1] > 0])
        assert shares.mean() == pytest.approx(0.5, abs=0.06)
        assert shares.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.1)


def test_cutmix_leaves_batches_alone_as_often_as_it_is_told():
    same = sum(torch.equal(CutMix(8)(*constant(), generator(seed))[0], constant()[0]) for seed in range(200))
    assert 70 < same < 140  # half of them, and those whose box is empty


def test_mixing_says_what_it_needs():
    images, labels = constant()
    with pytest.raises(ValueError, match="put Normalise before it"):
        Mixup(8)(images.byte(), labels, generator())
    with pytest.raises(ValueError, match=r"one label a row; these have the shape \(8, 10, 10\)"):
        CutMix(8)(images, torch.zeros(8, 10, 10).long(), generator())


def test_hsv_is_the_standard_librarys():
    pixels = torch.rand(200, 3, 1, 1, generator=generator(), dtype=torch.float64)
    pixels[0], pixels[1], pixels[2] = 0, 1, 0.5
    expected = torch.tensor([colorsys.rgb_to_hsv(*p.flatten().tolist()) for p in pixels], dtype=torch.float64)
    torch.testing.assert_close(to_hsv(pixels).flatten(1), expected)
    torch.testing.assert_close(to_rgb(to_hsv(pixels)), pixels)


def test_colours_change_about_half_of_the_rows_within_their_limits():
    images = torch.full((400, 3, 2, 2), 0.5)
    # grey has no hue to turn, so its value moves by 20 / 255 and its saturation takes off 30 / 255 of what that gives
    for step, limit in ((BrightnessContrast(), 0.45), (HueSaturationValue(), 0.5 - (0.5 - 20 / 255) * (1 - 30 / 255))):
        after, _ = step(images, torch.zeros(400), generator())
        gap = (after - images).abs().flatten(1).amax(1)
        assert 150 < (gap > 1e-6).sum() < 250
        assert gap.max() <= limit + 1e-6
        assert after.min() >= 0
        assert after.max() <= 1
    with pytest.raises(ValueError, match="three channels, red, green and blue; these images have 1"):
        BrightnessContrast()(images[:, :1], torch.zeros(400), generator())
