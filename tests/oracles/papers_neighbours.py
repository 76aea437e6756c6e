"""Slow oracles of the losses that look at neighbouring pixels, window by window, in the manner of `papers`.

A label map is a dictionary from the place of a pixel, a tuple of whole numbers, to its label as class probabilities, or
to None where it is ignored; an image likewise to a list of channels. The oracles of priors return the same kind of map.
[I] Islam and Glocker 2021 (SVLS), [N] Murugesan et al. 2023 (NACL).
"""

import itertools
import math

from steps import highest, log_softmax, size, softmax


def offsets(axes, kernel_size):
    """All steps from the middle of a window to one of its pixels, the middle included."""
    reach = kernel_size // 2
    return list(itertools.product(range(-reach, reach + 1), repeat=axes))


def bell(offset, sigma):
    """A Gaussian, not normalised."""
    return math.exp(-sum(step * step for step in offset) / (2.0 * sigma * sigma))


def look(things, place, shape, padding, background):
    """What lies at a place, be it outside the map."""
    if all(0 <= x < length for x, length in zip(place, shape, strict=True)):
        return things[place]
    if padding == "inside":
        return None
    if padding == "background":
        return background
    return things[tuple(min(max(x, 0), length - 1) for x, length in zip(place, shape, strict=True))]


def blurred(labels, shape, classes, weigh, kernel_size, padding, own=None):
    """The weighted mean of the labels in every window; what is not known weighs nothing.

    `own` is the label of the pixel in the middle, if it counts there otherwise than for its neighbours.
    """
    first = [1.0] + [0.0] * (classes - 1)
    found = {}
    for place in labels:
        total, parts = 0.0, [0.0] * classes
        for offset in offsets(len(shape), kernel_size):
            there = tuple(x + step for x, step in zip(place, offset, strict=True))
            label = own[place] if own and there == place else look(labels, there, shape, padding, first)
            if label is not None:
                weight = weigh(place, there, offset)
                total += weight
                parts = [part + weight * q for part, q in zip(parts, label, strict=True)]
        found[place] = [part / total for part in parts] if total else parts
    return found


def svls_kernel(axes, kernel_size, sigma):
    """[I]: a Gaussian that sums to 1; its middle becomes 1 less itself; all are divided by that, and by their sum."""
    weights = {offset: bell(offset, sigma) for offset in offsets(axes, kernel_size)}
    total, middle = sum(weights.values()), (0,) * axes
    weights = {offset: weight / total for offset, weight in weights.items()}
    if kernel_size == 1:
        return weights
    rest = 1.0 - weights[middle]
    weights[middle] = rest
    weights = {offset: weight / rest for offset, weight in weights.items()}
    total = sum(weights.values())
    return {offset: weight / total for offset, weight in weights.items()}


def mean_prior(labels, shape, classes, kernel_size, padding):
    """[N]: proportions of the classes."""
    return blurred(labels, shape, classes, lambda *_: 1.0, kernel_size, padding)


def gaussian_prior(labels, shape, classes, kernel_size, padding, sigma, own=None):
    """[I] and [N]: the kernel of SVLS."""
    kernel = svls_kernel(len(shape), kernel_size, sigma)
    return blurred(labels, shape, classes, lambda *at: kernel[at[2]], kernel_size, padding, own)


def number_prior(labels, shape, classes, kernel_size, padding, which):
    """[N]: one class number of each window, made a label again."""
    found, first = {}, [1.0] + [0.0] * (classes - 1)
    for place in labels:
        seen = []
        for offset in offsets(len(shape), kernel_size):
            there = tuple(x + step for x, step in zip(place, offset, strict=True))
            label = look(labels, there, shape, padding, first)
            if label is not None:
                seen.append(highest(label))
        seen.sort()
        if not seen:
            found[place] = None
            continue
        pick = {
            "max": seen[-1],
            "min": seen[0],
            "median": seen[(len(seen) - 1) // 2],
            "mode": max(sorted(set(seen)), key=seen.count),
        }[which]
        found[place] = [float(k == pick) for k in range(classes)]
    return found


def image_prior(labels, shape, classes, kernel_size, padding, image, contrast, image_distance, sigma=None):
    """[N]: pixels weigh the more the more they look like the middle one; with a sigma also by how near they are."""
    channels = len(next(iter(image.values())))

    def weigh(place, there, offset):
        mine, other = image[place], look(image, there, shape, padding, [0.0] * channels)
        apart = 0.0
        for a, b in zip(mine, other, strict=True):
            step = abs(a - b) / contrast
            apart += step if image_distance == "l1" else step * step
        return math.exp(-apart) * (1.0 if sigma is None else bell(offset, sigma))

    return blurred(labels, shape, classes, weigh, kernel_size, padding)


def fit(z, label):
    """Cross-entropy of one row."""
    return -sum(q * x for q, x in zip(label, log_softmax(z), strict=True) if q != 0.0)


def penalty(z, prior, distance, on):
    """[N]: the sum over the classes of the distances of logits, or probabilities, from the prior."""
    apart = [x - t for x, t in zip(softmax(z) if on == "probs" else z, prior, strict=True)]
    return sum(size(x) if distance == "l1" else x * x for x in apart)
