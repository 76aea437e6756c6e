"""Slow oracles of the losses that measure a batch as a whole, in the manner of `papers`; values only, see `steps`.

Every oracle takes the rows of logits, one label a row as class probabilities, the weight of every row (0 if ignored)
and, of methods that rank, the share of epochs in which its sample was right; it returns what is added to the mean
cross-entropy.
[H] Hebbalaguppe et al. 2022 (MDCA), [L] Liang et al. 2020 (DCA), [K] Kumar et al. 2018 (MMCE), [S] Karandikar et al.
2021 (soft bins), [M] Moon et al. 2020 (CRL), [A] Park et al. 2023 (ACLS).
"""

import cmath
import math

from steps import held, highest, hinge, log_softmax, lowest, root, sign, size, softmax


def mean(numbers, weights):
    """The weighted mean; 0 of nothing."""
    total, mass = 0.0, 0.0
    for x, w in zip(numbers, weights, strict=True):
        if w != 0.0:
            total += w * x
            mass += w
    return total / mass if mass else 0.0


def cross_entropies(rows, labels):
    """One number a row."""
    found = []
    for z, q in zip(rows, labels, strict=True):
        log_p = log_softmax(z)
        found.append(-sum(share * x for share, x in zip(q, log_p, strict=True) if share != 0.0))
    return found


def confidences(rows):
    """The probability of the predicted class."""
    return [softmax(z)[highest(z)] for z in rows]


def hits(rows, labels):
    """1 where the predicted class is the label, 0 elsewhere; the probability of that under a soft label. Held."""
    return [q[highest(z)] for z, q in zip(rows, labels, strict=True)]


def mdca(rows, labels, weights, strength):
    """[H]: the mean over the classes of |mean probability - share of the labels|."""
    classes, total = len(rows[0]), 0.0
    for k in range(classes):
        predicted = mean([softmax(z)[k] for z in rows], weights)
        total += size(predicted - mean([q[k] for q in labels], weights))
    return strength * total / classes


def dca(rows, labels, weights, strength):
    """[L]: |mean confidence - accuracy|."""
    return strength * size(mean(confidences(rows), weights) - mean(hits(rows, labels), weights))


def mmce(rows, labels, weights, strength, width):
    """[K]: the square of the maximum mean calibration error, by all pairs of rows, each with itself as well."""
    c, a, total = confidences(rows), hits(rows, labels), 0.0
    for i in range(len(rows)):
        for j in range(len(rows)):
            alike = cmath.exp(-size(c[i] - c[j]) / width)
            total += weights[i] * weights[j] * (a[i] - c[i]) * (a[j] - c[j]) * alike
    return strength * total / sum(weights) ** 2 if sum(weights) else 0.0


def mmce_weighted(rows, labels, weights, strength, width):
    """[K], its weighted form: the three sums over right and wrong rows as printed; 0 where one kind is missing."""
    c, a = confidences(rows), hits(rows, labels)
    right = sum(w * x for w, x in zip(weights, a, strict=True))
    wrong = sum(w * (1.0 - x) for w, x in zip(weights, a, strict=True))
    if not right > 0.0 or not wrong > 0.0:
        return 0.0
    both_right = both_wrong = mixed = 0.0
    for i in range(len(rows)):
        for j in range(len(rows)):
            alike = weights[i] * weights[j] * cmath.exp(-size(c[i] - c[j]) / width)
            both_right += a[i] * a[j] * (1.0 - c[i]) * (1.0 - c[j]) * alike
            both_wrong += (1.0 - a[i]) * (1.0 - a[j]) * c[i] * c[j] * alike
            mixed += a[i] * (1.0 - a[j]) * (1.0 - c[i]) * c[j] * alike
    return strength * (both_right / right**2 + both_wrong / wrong**2 - 2.0 * mixed / (right * wrong))


def soft_ece(rows, labels, weights, strength, bins, temperature):
    """[S]: rows belong to every bin by a softmax of squared distances from its middle; the L2 norm of the gaps."""
    c, a, total = confidences(rows), hits(rows, labels), 0.0
    members = [softmax([-((x - (b + 0.5) / bins) ** 2) / temperature for b in range(bins)]) for x in c]
    for b in range(bins):
        within = [w * u[b] for w, u in zip(weights, members, strict=True)]
        inside = sum(within)
        if held(inside) > 0.0:
            sure = sum(u * x for u, x in zip(within, c, strict=True)) / inside
            true = sum(u * x for u, x in zip(within, a, strict=True)) / inside
            total += inside / sum(weights) * (sure - true) ** 2
    return strength * root(total)


def ranked_confidence(z, kind):
    """[M]: the largest probability, one less the normalised entropy, or how far the largest exceeds the second."""
    p, log_p = softmax(z), log_softmax(z)
    if kind == "entropy":
        return 1.0 + sum(x * y for x, y in zip(p, log_p, strict=True)) / math.log(len(z))
    first = highest(z)
    if kind == "max":
        return p[first]
    second = None
    for k in range(len(z)):
        if k != first and (second is None or held(z[k]) > held(z[second])):
            second = k
    return p[first] - p[second]


def partners(weights):
    """The next row that is not ignored; after the last one the first."""
    kept = [n for n, w in enumerate(weights) if w != 0.0]
    return {n: kept[(place + 1) % len(kept)] for place, n in enumerate(kept)}


def crl(rows, labels, weights, shares, strength, confidence):
    """[M]: max(0, -sgn(h_n - h_m) (c_n - c_m) + |h_n - h_m|), the mean over rows n, each with the row m behind it."""
    c = [ranked_confidence(z, confidence) for z in rows]
    losses = [0.0] * len(rows)
    for n, m in partners(weights).items():
        ahead = shares[n] - shares[m]
        losses[n] = hinge(-sign(ahead) * (c[n] - c[m]) + abs(ahead))
    return strength * mean(losses, weights)


def beyond_margin(z, margin):
    """[A] Eq. 11, class by class."""
    high, low = highest(z), lowest(z)
    far = []
    for j in range(len(z)):
        far.append(held(z[high] - (z[low] if j == high else z[j])) >= margin)
    return far


def crl_by_margin(rows, labels, weights, strength, confidence, margin):
    """[A] Table 6, row 2: the push of [M] on one sample's confidence on those logits where Eq. 11 holds."""
    losses = []
    for z in rows:
        far = beyond_margin(z, margin)
        movable = [x if acts else held(x) for x, acts in zip(z, far, strict=True)]
        losses.append(ranked_confidence(movable, confidence) if any(far) else 0.0)
    return strength * mean(losses, weights)


def acls_by_rank(rows, labels, weights, shares, margin, top, rest, form):
    """[A] Table 6, row 3: the smoothing of Eq. 10, or a constant one, where [M]'s order is wrong with a partner."""
    c = [held(x) for x in confidences(rows)]
    wrong = set(range(len(rows))) if form == "adaptive" else set()  # Table 5: without a condition
    for n, m in partners(weights).items():
        if (shares[n] - shares[m]) * (c[n] - c[m]) < 0.0:
            wrong |= {n, m}
    losses = []
    for n, z in enumerate(rows):
        high, low, loss = highest(z), lowest(z), 0.0
        for j in range(len(z)):
            excess = z[high] - (z[low] if j == high else z[j]) - margin
            loss += (top if j == high else rest) * (excess if form == "conditional" else excess**2 / 2.0)
        losses.append(loss if n in wrong else 0.0)
    return mean(losses, weights)


class Record:
    """What ranking remembers, in whole epochs: how often each sample was right, and its share of what it could be."""

    def __init__(self, samples):
        self.right, self.now, self.epochs = [0.0] * samples, {}, 0

    def see(self, index, rows, labels, weights):
        """A batch; a sample that is seen twice in an epoch counts once, by its better answer."""
        for number, hit, w in zip(index, hits(rows, labels), weights, strict=True):
            if w != 0.0:
                self.now[number] = max(hit, self.now.get(number, 0.0))

    def end_epoch(self):
        """From here on the epoch counts."""
        for number, hit in self.now.items():
            self.right[number] += hit
        self.now, self.epochs = {}, self.epochs + 1

    def shares(self, index):
        """0 for the least of all samples, 1 for one that was right in every epoch."""
        least = min(self.right)
        span = self.epochs - least
        return [(self.right[number] - least) / span if span else 0.0 for number in index]
