"""What the words mean, for `confide explain`: data only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """One word, explained on one screen."""

    title: str
    says: str  # what it is, in plain words
    formula: str
    trap: str  # how it misleads
    use: str
    also: tuple[str, ...] = ()  # other names


TERMS = {
    "calibration": Term(
        "Calibration",
        "A network is calibrated if, of all predictions made with confidence 0.8, 80 in 100 are right, and so for any "
        "other confidence. It is not accuracy: a coin that says 0.5 is calibrated and useless.",
        "P(right | confidence = c) = c for every c",
        "It is a property of predictions on some data. On other data (a new site, a new camera) it must be seen anew.",
        "Measure it with nll and ece together, improve it with a loss or a temperature.",
        ("calibrated",),
    ),
    "confidence": Term(
        "Confidence",
        "The probability that the network gives to the class that it predicts.",
        "max over k of softmax(z)_k",
        "In float32 it is exactly 1 from a logit gap of about 17 on; keep logits, not probabilities.",
        "confide doctor tells how many confidences are rounded to 1.",
        ("saturation", "saturated"),
    ),
    "ece": Term(
        "Expected calibration error",
        "Sort predictions into bins by confidence. In each, compare the mean confidence with the share that is right. "
        "ECE is the mean of these gaps, weighted by how many predictions a bin holds.",
        "sum over bins b of n_b / n * |accuracy_b - confidence_b|",
        "It is never 0 on finite data: perfectly calibrated predictions show about 0.1 with 100 samples and 0.02 to "
        "0.03 with 2,000 (10 classes, 15 bins). Means over batches inflate it in the same way. Papers print it "
        "times 100.",
        "confide.ECE(bins=15); always with the number of samples, and beside nll or brier.",
        ("expected calibration error",),
    ),
    "aece": Term(
        "Adaptive ECE",
        "ECE with bins that hold equally many predictions, so that none is nearly empty.",
        "as ECE, with bins at quantiles of the confidence",
        "Released code often drops every prediction at the lowest confidence, and reports 0 for a constant network.",
        "Read it where confidences crowd near 1.",
        ("adaptiveece", "ace"),
    ),
    "classwise-ece": Term(
        "Classwise ECE",
        "The same for every class, not only the predicted one: is class k there in 30 of 100 cases in which it gets "
        "probability 0.3? Then the mean over classes.",
        "1/C * sum over k, b of n_kb / n * |share of k in b - mean p_k in b|",
        "With many classes almost all probabilities are near 0, and the number is small whatever the network does.",
        "Read it per class, where single probabilities matter.",
        ("cwece", "sce", "static calibration error"),
    ),
    "nll": Term(
        "Negative log-likelihood",
        "The mean of -log of the probability that the true class got: cross-entropy on held-out data. It is lowest "
        "for the true probabilities, so it cannot be cheated.",
        "mean of -log softmax(z)_y",
        "One row whose true class has probability 0 makes it infinite. It mixes accuracy and calibration.",
        "confide.NLL(); choose temperatures and settings by it.",
        ("negative log-likelihood", "log loss", "cross-entropy"),
    ),
    "brier": Term(
        "Brier score",
        "The squared distance between the probabilities and the truth (1 for the true class, 0 for the others). Like "
        "NLL it is lowest for the true probabilities, but a single miss costs at most 2.",
        "mean of sum over k of (p_k - [k = y])^2",
        "Some texts look at one class only, or divide by the number of classes: half as large for two classes.",
        "Read it where NLL is ruled by a few rows.",
        ("brier score",),
    ),
    "temperature": Term(
        "Temperature",
        "One number that divides all logits. Above 1 it lowers confidence, below 1 it raises it; the predicted class "
        "stays the same.",
        "softmax(z / T)",
        "Fit it on data that were neither trained on nor tested on, by NLL. Logits are needed: log-probabilities do, "
        "probabilities do not.",
        "The simplest repair of a trained network.",
        ("temperature scaling",),
    ),
    "margin": Term(
        "Margin",
        "The distance between the largest logit and another one, up to which MbLS and ACLS leave logits alone. Beyond "
        "it they pull.",
        "max over j of z_j - z_k > m is penalised",
        "Too small a margin makes the network underconfident; one that no distance exceeds does nothing.",
        "confide suggest logits.npz proposes one for your data.",
        ("mbls",),
    ),
    "label-smoothing": Term(
        "Label smoothing",
        "Training with 1 - e on the true class and e spread over all, so that logits stop growing.",
        "target = (1 - e) * one_hot + e / C",
        "Some code spreads e over the other C - 1 classes. It also softens predictions that need no softening.",
        "confide show LabelSmoothing",
        ("smoothing", "epsilon"),
    ),
    "ignore-index": Term(
        "ignore_index",
        "The label of what is to be left out: pixels without annotation, padded tokens. Torch's habit is -100; masks "
        "use 255, some data -1 or the number of classes.",
        "rows with y = ignore_index count as if they were not there",
        "Unnamed, 255 among 19 classes crashes some tools and counts as a wrong answer in others. A -1 in a uint8 mask "
        "is 255.",
        "--ignore-index 255, or ignore_index=255; confide doctor says which value looks like it.",
        ("ignore", "void"),
    ),
    "logits": Term(
        "Logits",
        "What a network gives before the softmax: any real numbers, of which only differences matter.",
        "softmax(z)_k = exp(z_k) / sum over j of exp(z_j)",
        "Probabilities handed on as logits get a second softmax: no confidence is then above e / (e + C - 1).",
        "Save logits; the logarithm of a softmax serves as well.",
        ("logit", "softmax", "double softmax"),
    ),
    "overconfidence": Term(
        "Overconfidence",
        "Being right less often than the confidence says. Networks trained long with cross-entropy mostly are.",
        "mean confidence - accuracy > 0",
        "The mean can be 0 while high confidences are too high and low ones too low: look at the bins.",
        "A loss with a margin, or a temperature above 1.",
        ("underconfidence", "signed gap"),
    ),
}
