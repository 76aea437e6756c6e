"""Slow oracles of the losses, written from the papers alone: one row at a time, plain floats, plain loops.

Every oracle takes the logits `z` of one row and the number `y` of its true class, and returns (value, gradient).
The gradients are derived by hand. `expected` extends an oracle to a soft label: the mean over the hard labels in it.
Numbers of equations: [M] Liu et al. 2022 (MbLS), [A] Park et al. 2023 (ACLS), [R] Lienen and Huellermeier 2021.
"""

import math


def highest(z):
    """The predicted class; the lowest index among equals."""
    best = 0
    for k in range(len(z)):
        if z[k] > z[best]:
            best = k
    return best


def lowest(z):
    """The class of the smallest logit; the lowest index among equals."""
    best = 0
    for k in range(len(z)):
        if z[k] < z[best]:
            best = k
    return best


def log_total(numbers):
    """log sum exp."""
    numbers = list(numbers)
    shift = max(numbers)
    return shift + math.log(math.fsum(math.exp(x - shift) for x in numbers))


def log_softmax(z):
    """[A] Eq. 2, its logarithm."""
    total = log_total(z)
    return [x - total for x in z]


def cross_entropy(z, y):
    """[A] Eq. 1 (its sum) and Eq. 3: p - q."""
    log_p = log_softmax(z)
    gradient = []
    for j in range(len(z)):
        gradient.append(math.exp(log_p[j]) - (1.0 if j == y else 0.0))
    return -log_p[y], gradient


def label_smoothing(z, y, smoothing):
    """[A] Eq. 4 put into Eq. 1, and Eq. 5."""
    classes = len(z)
    log_p = log_softmax(z)
    value, gradient = 0.0, []
    for j in range(classes):
        label = 1.0 - smoothing * (1.0 - 1.0 / classes) if j == y else smoothing / classes
        value -= label * log_p[j]
        gradient.append(math.exp(log_p[j]) - label)
    return value, gradient


def mbls(z, y, margin, strength, over):
    """[M] Eq. 4. The maximum is part of the function: what leaves the far classes arrives at the highest one."""
    value, gradient = cross_entropy(z, y)
    top = highest(z)
    each = strength if over == "sum" else strength / len(z)
    for k in range(len(z)):
        distance = z[top] - z[k]
        if distance > margin:
            value += each * (distance - margin)
            gradient[k] -= each
            gradient[top] += each
    return value, gradient


def _excess(distance, margin, form):
    """(penalty, its derivative) of one distance: half a squared hinge, or one of the two ablations of [A] Table 5."""
    excess = distance - margin
    if form == "adaptive":  # [A] Eq. 10 without the indicator of Eq. 11
        return excess * excess / 2.0, excess
    if excess <= 0.0:
        return 0.0, 0.0
    if form == "conditional":  # a constant smoothing with the indicator of Eq. 11
        return excess, 1.0
    return excess * excess / 2.0, excess


def acls(z, y, margin, top, rest, form="full"):
    """[A] Eq. 13 with a factor 1/2, summed over the classes and differentiated through its maximum and minimum."""
    value, gradient = cross_entropy(z, y)
    high, low = highest(z), lowest(z)
    penalty, slope = _excess(z[high] - z[low], margin, form)
    value += top * penalty
    gradient[high] += top * slope
    gradient[low] -= top * slope
    for j in range(len(z)):
        if j != high:
            penalty, slope = _excess(z[high] - z[j], margin, form)
            value += rest * penalty
            gradient[high] += rest * slope
            gradient[j] -= rest * slope
    return value, gradient


def acls_held(z, y, margin, top, rest):
    """The value of `acls` with the gradient of [A] Eq. 12, which is the gradient of no function."""
    value, _ = acls(z, y, margin, top, rest)
    _, gradient = cross_entropy(z, y)
    high, low = highest(z), lowest(z)
    for j in range(len(z)):
        if j == high:
            gradient[j] += top * max(0.0, z[j] - z[low] - margin)
        else:
            gradient[j] -= rest * max(0.0, z[high] - z[j] - margin)
    return value, gradient


def acls_released(z, y, margin, top, rest):
    """What the authors' code computes, by the description of it: no minimum, no 1/2, the others shared by C - 1.

    Each of several equal maxima adds the first term once more, and all of its gradient goes to the lowest index.
    """
    value, gradient = cross_entropy(z, y)
    high = highest(z)
    for j in range(len(z)):
        if z[j] == z[high]:
            excess = max(0.0, z[j] - margin)
            value += top * excess**2
            gradient[high] += 2.0 * top * excess
        else:
            each = rest / (len(z) - 1)
            excess = max(0.0, z[high] - z[j] - margin)
            value += each * excess**2
            gradient[j] -= 2.0 * each * excess
    return value, gradient


def label_relaxation(z, y, alpha):
    """[R] Eq. 5 with the projection of Eq. 6; gradient p - projection, nothing inside the credal set of Eq. 3."""
    log_p = log_softmax(z)
    log_others = log_total(log_p[k] for k in range(len(z)) if k != y)
    if math.exp(log_others) <= alpha:
        return 0.0, [0.0] * len(z)
    value, gradient = 0.0, []
    for k in range(len(z)):
        share = 1.0 - alpha if k == y else alpha * math.exp(log_p[k] - log_others)
        if k == y:
            value += share * (math.log1p(-alpha) - log_p[y])
        elif share > 0.0:
            value += share * (math.log(alpha) - log_others)
        gradient.append(math.exp(log_p[k]) - share)
    return value, gradient


def expected(oracle, z, label, **knobs):
    """The oracle under a soft label: the expectation over hard labels."""
    value, gradient = 0.0, [0.0] * len(z)
    for y in range(len(z)):
        if label[y] != 0.0:
            v, g = oracle(z, y, **knobs)
            value += label[y] * v
            for j in range(len(z)):
                gradient[j] += label[y] * g[j]
    return value, gradient


def over_rows(oracle, logits, labels, ignored=None, **knobs):
    """Values and gradients of many rows (lists); a hard label equal to `ignored`, or a soft one of zeros, gives 0."""
    values, gradients = [], []
    for z, label in zip(logits, labels, strict=True):
        if label == ignored or (isinstance(label, list) and not any(label)):
            value, gradient = 0.0, [0.0] * len(z)
        elif isinstance(label, list):
            value, gradient = expected(oracle, z, label, **knobs)
        else:
            value, gradient = oracle(z, label, **knobs)
        values.append(value)
        gradients.append(gradient)
    return values, gradients
