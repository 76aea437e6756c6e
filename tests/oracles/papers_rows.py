"""More slow oracles in the manner of `papers`: focal losses, confidence penalty, squared margins, pairs, Brier score.

[F] Mukhoti et al. 2020 (focal losses), [D] Tao et al. 2023 (dual focal), [P] Pereyra et al. 2017 (confidence penalty),
[M2] Murugesan et al. 2023 (squared margins), [C] Cheng and Vasconcelos 2022 (pairs), [B] Brier 1950.
"""

import math

from papers import cross_entropy, highest, log_softmax, log_total


def others(log_p, y):
    """1 - p_y, as the sum of the other probabilities."""
    return math.exp(log_total(log_p[k] for k in range(len(log_p)) if k != y))


def power(base, exponent):
    """base ** exponent; 0 where that is infinite: it is only ever multiplied by something that is 0 there."""
    return 0.0 if base == 0.0 and exponent < 0.0 else base**exponent


def focal(z, y, gamma):
    """[F] Eq. for the focal loss. Its derivative on p_y, times p_y (q - p)."""
    log_p = log_softmax(z)
    lack = others(log_p, y)
    factor = power(lack, gamma) - gamma * math.exp(log_p[y]) * power(lack, gamma - 1.0) * log_p[y]
    gradient = []
    for j in range(len(z)):
        error = -lack if j == y else math.exp(log_p[j])
        gradient.append(factor * error)
    return -power(lack, gamma) * log_p[y], gradient


def focal_sd(z, y, low, high, threshold):
    """[F] FLSD: gamma by the probability of the true class, held still."""
    p = math.exp(log_softmax(z)[y])
    return focal(z, y, low if p < threshold else high)


def dual_focal(z, y, gamma):
    """[D]: the largest probability below that of the true class; among equals the lowest class moves with it."""
    log_p = log_softmax(z)
    p = [math.exp(x) for x in log_p]
    rival = None
    for k in range(len(z)):
        if z[k] < z[y] and (rival is None or z[k] > z[rival]):
            rival = k
    base = others(log_p, y) + (0.0 if rival is None else p[rival])
    on_log = -power(base, gamma)  # derivative of the loss on log p_y, on p_y and on p_j
    on_base = -gamma * power(base, gamma - 1.0) * log_p[y]
    gradient = []
    for j in range(len(z)):
        d_log = (1.0 if j == y else 0.0) - p[j]
        total = on_log * d_log - on_base * p[y] * d_log
        if rival is not None:
            total += on_base * p[rival] * ((1.0 if j == rival else 0.0) - p[j])
        gradient.append(total)
    return -power(base, gamma) * log_p[y], gradient


def confidence_penalty(z, y, strength, over):
    """[P]: cross-entropy minus strength times the entropy, or its mean over the classes."""
    value, gradient = cross_entropy(z, y)
    log_p = log_softmax(z)
    each = strength if over == "sum" else strength / len(z)
    entropy = -math.fsum(math.exp(x) * x for x in log_p)
    for j in range(len(z)):
        gradient[j] += each * math.exp(log_p[j]) * (log_p[j] + entropy)
    return value - each * entropy, gradient


def mbls_squared(z, y, margin, strength, over):
    """[M2], with the hinge that the released code lacks."""
    value, gradient = cross_entropy(z, y)
    top = highest(z)
    each = strength if over == "sum" else strength / len(z)
    for k in range(len(z)):
        excess = z[top] - z[k] - margin
        if excess > 0.0:
            value += each * excess * excess
            gradient[k] -= 2.0 * each * excess
            gradient[top] += 2.0 * each * excess
    return value, gradient


def share(a, b):
    """p_a / (p_a + p_b) of two logits, and minus its logarithm."""
    log = log_total([a, b]) - a
    return math.exp(-log), log


def cpc(z, y, pairs, rest):
    """[C] in the normalisation of the CALS code, every class paired with every other one but not with itself."""
    value, gradient = cross_entropy(z, y)
    rivals = [k for k in range(len(z)) if k != y]
    each = pairs / len(rivals)
    for k in rivals:
        value += each * share(z[y], z[k])[1]
        gradient[y] -= each * share(z[k], z[y])[0]
        gradient[k] += each * share(z[k], z[y])[0]
    for k in rivals:
        for j in rivals:
            if j != k:  # so that C - 2 is not 0
                each = rest / 2.0 / (len(rivals) * (len(z) - 2.0))
                value += each * share(z[k], z[j])[1]
                gradient[k] -= each * share(z[j], z[k])[0]
                gradient[j] += each * share(z[j], z[k])[0]
    return value, gradient


def brier(z, y):
    """[B], summed over the classes."""
    log_p = log_softmax(z)
    p = [math.exp(x) for x in log_p]
    errors = [-others(log_p, y) if k == y else p[k] for k in range(len(z))]
    mean = math.fsum(p[k] * errors[k] for k in range(len(z)))
    return math.fsum(e * e for e in errors), [2.0 * p[j] * (errors[j] - mean) for j in range(len(z))]
