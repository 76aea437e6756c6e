"""Augmentation of whole batches, against the same done row by row."""

import pytest
import torch
import torch.nn.functional as F

from confide.data.augment import CIFAR10, Crop, Flip, Normalise, Shift, shifted
from confide.data.batches import batches
from confide.data.colour import BrightnessContrast, HueSaturationValue
from confide.data.mixing import CutMix, Mixup
from confide.data.split import Part


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def images(rows=200, size=6, dtype=torch.uint8):
    return torch.randint(1, 255, (rows, 3, size, size), generator=generator(9)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_crops_are_windows_of_the_padded_image_each_at_its_own_place(dtype):
    before = images(dtype=dtype)
    after, _ = Crop(2)(before, torch.zeros(200), generator())
    padded = F.pad(before, (2, 2, 2, 2))
    places = []
    for row in range(200):
        fits = [
            (y, x) for y in range(5) for x in range(5) if torch.equal(padded[row, :, y : y + 6, x : x + 6], after[row])
        ]
        assert len(fits) == 1
        places += fits
    assert len(set(places)) == 25  # every offset occurs, as it does with 200 draws unless the draw is broken
    assert after.dtype == dtype


def test_masks_follow_their_images():
    masks = torch.arange(36, dtype=torch.uint8).view(1, 6, 6).repeat(50, 1, 1)
    pictures = masks[:, None] + 1  # where nothing was padded, a picture is its mask plus one
    for step in (Crop(2, fill=99), Flip()):
        x, y = step(pictures, masks, generator())
        inside = x[:, 0] > 0
        assert torch.equal(x[:, 0][inside], y[inside] + 1)
        assert (y[~inside] == 99).all()
        assert not torch.equal(y, masks)


def test_flip_mirrors_about_half_of_the_rows():
    before = images()
    after, _ = Flip()(before, torch.zeros(200), generator())
    mirrored = (after == before.flip(-1)).flatten(1).all(1)
    same = (after == before).flatten(1).all(1)
    assert (mirrored ^ same).all()
    assert 70 < mirrored.sum() < 130  # five standard deviations


def test_a_shift_by_whole_pixels_moves_and_continues_the_edge():
    before = images(4, 8, torch.float32)
    by = torch.tensor([[0.0, 0.0], [0.25, 0.0], [0.0, -0.125], [0.125, 0.25]])  # of 8 pixels: right, and down
    after = shifted(before, by)
    for row, (dx, dy) in enumerate([(0, 0), (2, 0), (0, -1), (1, 2)]):
        for y in range(8):
            for x in range(8):
                source = before[row, :, min(max(y - dy, 0), 7), min(max(x - dx, 0), 7)]
                torch.testing.assert_close(after[row, :, y, x], source, rtol=0, atol=1e-3)


def test_a_shift_by_half_a_pixel_is_the_mean_of_two():
    before = images(1, 8, torch.float64)
    after = shifted(before, torch.tensor([[0.5 / 8, 0.0]], dtype=torch.float64))
    torch.testing.assert_close(after[..., 1:], (before[..., 1:] + before[..., :-1]) / 2)


def test_shift_stays_within_its_share_and_refuses_masks():
    ramp = torch.arange(100.0).expand(500, 1, 100, 100) / 100
    moved, _ = Shift(0.1)(ramp, torch.zeros(500), generator())
    by = (ramp - moved)[:, 0, 50, 50]
    assert -0.1001 < by.min() < -0.09 < 0.09 < by.max() < 0.1001
    with pytest.raises(ValueError, match="Shift moves by parts of a pixel, which a mask cannot follow"):
        Shift()(ramp, torch.zeros(500, 100, 100), generator())


def test_normalise_bytes_and_floats():
    x = images(2)
    y, _ = Normalise(*CIFAR10)(x, torch.zeros(2), generator())
    for channel in range(3):
        expected = (x[:, channel].double() / 255 - CIFAR10[0][channel]) / CIFAR10[1][channel]
        torch.testing.assert_close(y[:, channel].double(), expected, rtol=0, atol=1e-6)
    mean = torch.rand(3, 6, 6, generator=generator())
    z, _ = Normalise(mean)(x.float() / 255, torch.zeros(2), generator())
    torch.testing.assert_close(z, x.float() / 255 - mean)


@pytest.mark.parametrize("step", [Crop(2), Flip(), Shift()])
def test_the_generator_decides(step):
    one, two, three = (step(images(), torch.zeros(200), generator(seed))[0] for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, three)


STEPS = [Crop(2), Flip(), BrightnessContrast(), HueSaturationValue(), Normalise(*CIFAR10), Mixup(3), CutMix(3)]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a CUDA device"))])  # fmt: skip
@pytest.mark.parametrize("resident", [False, True])
def test_all_steps_in_a_row_on_a_device_repeat_to_the_bit(device, resident):
    part = Part(images(64), torch.arange(64) % 3)
    part = part.to(device) if resident else part
    one, two = (list(batches(part, 16, seed=1, steps=STEPS, device=None if resident else device)) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        assert a.inputs.device.type == a.targets.device.type == device
        assert a.targets.shape == (16, 3)
        assert torch.equal(a.inputs, b.inputs)
        assert torch.equal(a.targets, b.targets)
