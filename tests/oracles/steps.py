"""Numbers for oracles that give only a value: it is computed in complex numbers, and its gradient follows.

f(z + ih) = f(z) + ih f'(z) up to h^2, so that with h = 1e-30 the imaginary part is the derivative to the last digit,
without any difference being taken. Comparisons look at the real part; `held` keeps a number out of the derivative.
"""

import cmath

STEP = 1e-30


def held(x):
    """A constant."""
    return complex(x).real


def size(x):
    """The absolute value; its derivative at 0 is 0."""
    real = held(x)
    return 0.0 if real == 0.0 else x if real > 0.0 else -x


def hinge(x):
    """max(0, x); its derivative at 0 is 0."""
    return x if held(x) > 0.0 else 0.0


def root(x):
    """The square root; its derivative at 0 is taken as 0."""
    return 0.0 if held(x) == 0.0 else cmath.sqrt(x)


def sign(x):
    """-1, 0 or 1."""
    return (held(x) > 0.0) - (held(x) < 0.0)


def highest(z):
    """The predicted class; the lowest index among equals."""
    best = 0
    for k in range(len(z)):
        if held(z[k]) > held(z[best]):
            best = k
    return best


def lowest(z):
    """The class of the smallest logit; the lowest index among equals."""
    best = 0
    for k in range(len(z)):
        if held(z[k]) < held(z[best]):
            best = k
    return best


def log_softmax(z):
    """Over the classes of one row."""
    most = held(z[highest(z)])
    total = 0.0
    for x in z:
        total += cmath.exp(x - most)
    return [x - most - cmath.log(total) for x in z]


def softmax(z):
    """Over the classes of one row."""
    return [cmath.exp(x) for x in log_softmax(z)]


def differentiated(function, rows):
    """The value of a function of rows of logits, and its gradient, row by row."""
    value = function(rows)
    gradient = []
    for n, row in enumerate(rows):
        slopes = []
        for k in range(len(row)):
            moved = [list(other) if m == n else other for m, other in enumerate(rows)]
            moved[n][k] = complex(row[k], STEP)
            slopes.append(complex(function(moved)).imag / STEP)
        gradient.append(slopes)
    return held(value), gradient
