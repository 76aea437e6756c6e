"""The losses that look at neighbouring pixels against their oracles: every pixel, and the mean."""

import itertools
import math

import papers_neighbours as papers
import pytest
import steps
import torch
from test_oracles import IGNORED, close

from confide.losses import NACL, SVLS

CLASSES = 4
MAPS = {"line": (7,), "plane": (4, 5), "volume": (3, 3, 4), "thin": (1, 3)}
PADDINGS = ("inside", "replicate", "background")


def svls(labels, own, image, shape, *, sigma=1.0, kernel_size=3):
    """What takes the place of each label."""
    return papers.gaussian_prior(labels, shape, CLASSES, kernel_size, "replicate", sigma, own)


def nacl(labels, own, image, shape, *, prior="mean", kernel_size=3, padding="inside", **knobs):
    """What each pixel is compared with."""
    window = (labels, shape, CLASSES, kernel_size, padding)
    sigma = knobs.get("sigma", 1.0)
    if prior == "mean":
        return papers.mean_prior(*window)
    if prior == "gaussian":
        return papers.gaussian_prior(*window, sigma, own)
    if prior in ("bilateral", "proportions"):
        near = sigma if prior == "bilateral" else None
        return papers.image_prior(*window, image, knobs.get("contrast", 1.0), knobs.get("image_distance", "l2"), near)
    return papers.number_prior(*window, prior)


PRIORS = [
    {"prior": prior, "padding": padding, "kernel_size": size}
    for prior in ("mean", "gaussian", "max", "min", "median", "mode", "bilateral", "proportions")
    for padding in PADDINGS
    for size in (3, 5)
]
SCALES = [
    {"prior": "bilateral", "image_distance": "l1", "contrast": 0.5, "sigma": 0.7},
    {"prior": "bilateral", "image_distance": "l2", "contrast": 2.0, "sigma": 2.0},
    {"prior": "proportions", "image_distance": "l1", "contrast": 0.2},
    {"prior": "gaussian", "sigma": 0.5},
    {"prior": "gaussian", "sigma": 3.0, "kernel_size": 7},
    {"prior": "mean", "kernel_size": 1},
    {"prior": "median", "kernel_size": 1},
    {"prior": "mean", "kernel_size": 17, "padding": "replicate"},  # more pixels than a byte can count
    {"prior": "median", "kernel_size": 17, "padding": "background"},
]
FORMS = [
    {"distance": distance, "on": on, "over": over, "strength": 0.7}
    for distance in ("l1", "l2")
    for on in ("logits", "probs")
    for over in ("mean", "sum")
]
SMOOTH = [{"sigma": s, "kernel_size": k} for s, k in [(1.0, 3), (0.5, 3), (1.0, 1), (1.0, 5), (2.5, 5), (0.8, 7)]]
PAIRS = [(SVLS, svls, k) for k in SMOOTH] + [(NACL, nacl, k) for k in PRIORS + SCALES + FORMS]


def name(pair):
    return f"{pair[0].__name__}({', '.join(f'{k}={v}' for k, v in pair[2].items())})"


every_pair = pytest.mark.parametrize("pair", PAIRS, ids=name)


def pictures(shape, kind, seed=0):
    """Two label maps, the second with ignored pixels, their logits, and their images of two channels."""
    generator = torch.Generator().manual_seed(seed)
    rows = (2, *shape)
    logits = torch.randn((2, CLASSES, *shape), generator=generator, dtype=torch.float64) * 2
    image = torch.randn((2, 2, *shape), generator=generator, dtype=torch.float64)
    gone = torch.rand(rows, generator=generator) < 0.3
    gone[0] = False
    if kind == "hard":
        target = torch.randint(CLASSES, rows, generator=generator)
        return logits, torch.where(gone, IGNORED, target), image
    target = torch.rand((2, CLASSES, *shape), generator=generator, dtype=torch.float64) ** 3
    target[:, 1] *= target[:, 1] > 0.2
    target /= target.sum(1, keepdim=True)
    return logits, torch.where(gone.unsqueeze(1), 0.0, target), image


def map_of(target, image, n):
    """The n-th picture as the oracles read it."""
    labels, seen = {}, {}
    for place in itertools.product(*map(range, image.shape[2:])):
        if target.is_floating_point():
            q = [target[(n, k, *place)].item() for k in range(CLASSES)]
            labels[place] = q if any(q) else None
        else:
            label = target[(n, *place)].item()
            labels[place] = None if label == IGNORED else [float(k == label) for k in range(CLASSES)]
        seen[place] = [image[(n, channel, *place)].item() for channel in range(image.shape[1])]
    return labels, seen


def weighed(label, weight):
    """The label of a row under class weights, as in cross-entropy, and what the row counts for."""
    if label is None:
        return None, 0.0
    tilted = [w * q for w, q in zip(weight, label, strict=True)]
    return [q / sum(tilted) for q in tilted], sum(tilted)


def wanted(pair, logits, target, image, weight=None):
    """One number a pixel, its gradient, and what the pixel adds to the mean's denominator.

    A class weight counts a row more often: it tilts the soft label of that row, but not what its neighbours see of it.
    """
    kind, oracle, knobs = pair
    shape = tuple(image.shape[2:])
    scale = [1.0] * CLASSES if weight is None else weight.tolist()
    values, masses = torch.zeros(2, *shape).double(), torch.zeros(2, *shape).double()
    gradients = torch.zeros_like(logits)
    for n in range(2):
        labels, seen = map_of(target, image, n)
        own = {place: weighed(label, scale)[0] for place, label in labels.items()}
        for place, around in oracle(labels, own, seen, shape, **knobs).items():
            label, share = weighed(labels[place], scale)
            if label is None:
                continue

            def loss(rows, label=label, around=around):
                if kind is SVLS:
                    return papers.fit(rows[0], around)
                added = papers.penalty(rows[0], around, knobs.get("distance", "l1"), knobs.get("on", "logits"))
                added = added / CLASSES if knobs.get("over", "mean") == "mean" else added
                return papers.fit(rows[0], label) + knobs.get("strength", 0.1) * added

            at = (n, slice(None), *place)
            value, gradient = steps.differentiated(loss, [logits[at].tolist()])
            values[(n, *place)] = share * value
            gradients[at] = share * torch.tensor(gradient[0], dtype=torch.float64)
            masses[(n, *place)] = 1.0 if target.is_floating_point() else share
    return values, gradients, masses


def compare(pair, logits, target, image, weight=None):
    """One number a pixel, and the mean; in one pass and by autograd; with the classes on axis 1 and last."""
    kind, _, knobs = pair
    values, gradients, masses = wanted(pair, logits, target, image, weight)
    side = {"image": image} if knobs.get("prior") in ("bilateral", "proportions") else {}
    soft = target.is_floating_point()
    for fused, dim, reduction in [(False, 1, "none"), ("auto", 1, "none"), ("auto", 1, "mean"), ("auto", -1, "none")]:
        criterion = kind(**knobs, ignore_index=IGNORED, reduction=reduction, fused=fused, dim=dim, weight=weight)
        z = logits.movedim(1, dim).contiguous().requires_grad_()
        found = criterion(z, target.movedim(1, dim).contiguous() if soft else target, **side)
        divisor = masses.sum() if reduction == "mean" else 1.0
        close(found.detach(), values.sum() / divisor if reduction == "mean" else values)
        close(torch.autograd.grad(found.sum(), z)[0].movedim(dim, 1), gradients / divisor)


@every_pair
@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_planes(pair, kind):
    compare(pair, *pictures(MAPS["plane"], kind))


@pytest.mark.parametrize("pair", [p for p in PAIRS if p[2].get("kernel_size", 3) <= 3], ids=name)
@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_volumes(pair, kind):
    compare(pair, *pictures(MAPS["volume"], kind, seed=1))


@pytest.mark.parametrize("pair", [p for p in PAIRS if p[2].get("kernel_size", 3) == 5], ids=name)
def test_windows_larger_than_the_map(pair):
    """A volume of three pixels an axis, and a plane of one by three."""
    compare(pair, *pictures((2, 3, 2), "hard", seed=2))
    compare(pair, *pictures(MAPS["thin"], "soft", seed=3))


@every_pair
def test_lines(pair):
    compare(pair, *pictures(MAPS["line"], "hard", seed=4))


@every_pair
@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_class_weights(pair, kind):
    weight = torch.tensor([0.5, 1.0, 2.0, 1.5], dtype=torch.float64)
    compare(pair, *pictures((3, 3), kind, seed=5), weight)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("prior", ["bilateral", "proportions"])
def test_images_of_any_number_of_channels(prior, channels):
    logits, target, _ = pictures(MAPS["plane"], "hard")
    image = torch.randn((2, channels, 4, 5), generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    compare((NACL, nacl, {"prior": prior}), logits, target, image)


@pytest.mark.parametrize("pair", [p for p in PAIRS if p[2].get("kernel_size", 3) == 3], ids=name)
@pytest.mark.parametrize("number", [-100, -1, 2, 255, 260])
def test_any_number_can_mean_ignored(pair, number):
    """Also one that is a class, or one in its lowest byte."""
    logits, target, image = pictures(MAPS["plane"], "hard", seed=7)
    side = {"image": image} if pair[2].get("prior") in ("bilateral", "proportions") else {}
    target = torch.where(target == number, IGNORED, target)
    wanted = pair[0](**pair[2], ignore_index=IGNORED)(logits, target, **side)
    for dtype in (torch.int64, torch.int32):
        marked = torch.where(target == IGNORED, number, target).to(dtype)
        close(pair[0](**pair[2], ignore_index=number)(logits, marked, **side), wanted)


@pytest.mark.parametrize("prior", ["mean", "gaussian", "max", "min", "median", "mode", "bilateral", "proportions"])
def test_more_classes_than_a_byte_can_name(prior):
    """Four classes among three hundred have the priors that they have alone."""
    logits, target, image = pictures(MAPS["plane"], "hard", seed=8)
    names = torch.tensor([0, 100, 255, 299])
    wide = torch.zeros(2, 300, 4, 5, dtype=torch.float64)
    wide[:, names] = logits
    far = torch.where(target == IGNORED, IGNORED, names[target.clamp(max=3)])
    side = {"image": image} if prior in ("bilateral", "proportions") else {}
    criterion = NACL(prior=prior, strength=1.0, over="sum", distance="l2", ignore_index=IGNORED).penalty_only()
    alone, among = (criterion.target(z, y, **side) for z, y in ((logits, target), (wide, far)))
    assert alone.abs().max() > 1.0  # the label, less twice the distance from the prior
    close(among[:, names], alone)


# The oracles against themselves.


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("kernel_size", [3, 5, 7])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_the_middle_weighs_half(axes, kernel_size, sigma):
    kernel = papers.svls_kernel(axes, kernel_size, sigma)
    assert kernel[(0,) * axes] == pytest.approx(0.5, abs=1e-14)
    assert math.fsum(kernel.values()) == pytest.approx(1.0, abs=1e-14)


def test_an_edge_and_a_corner_of_the_published_kernel():
    kernel = papers.svls_kernel(2, 3, 1.0)
    assert kernel[(0, 1)] == pytest.approx(0.0778, abs=5e-5)
    assert kernel[(1, 1)] == pytest.approx(0.0472, abs=5e-5)
