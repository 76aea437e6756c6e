"""Our losses against numbers that the papers' own released code gave on the same logits."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from confide.losses import ACLSReleased, CrossEntropy, LabelRelaxation, LabelSmoothing, MbLS

FOLDER = Path(__file__).parent
FILES = ["ce", "label_smoothing_mbls", "mbls", "acls", "acls_repo_mbls_ls_ignore", "label_relaxation"]
EXACT = 1e-12

# Cases that agree less closely than in the last digits, each with the reason. None is skipped.
LOOSER = {
    ("label_relaxation", "c31"): (1e-7, "legacy code: 1 - alpha and alpha are rounded to float32"),
    ("label_relaxation", "c35"): (1e-7, "legacy code: 1 - alpha and alpha are rounded to float32"),
}
# Constants to add to the logits of a case: its file holds them as they were before its own note was followed.
ADDED = {("acls", "c41"): 50.0}
# The cases whose knobs the authors' code left at its own defaults.
DEFAULTS = {"mbls": {"margin": 10, "alpha": 0.1}, "acls": {"pos_lambda": 1.0, "neg_lambda": 0.1, "alpha": 0.1}}


def load(file):
    """The cases of a file by name, each a dictionary."""
    with np.load(FOLDER / f"loss_{file}.npz", allow_pickle=False) as arrays:
        cases = json.loads(str(arrays["meta_json"]))
        for case in cases:
            for key in ("logits", "labels", "loss", "terms", "grad"):
                case[key] = torch.from_numpy(arrays[f"{case['case']}_{key}"])
            case["logits"] = case["logits"] + ADDED.get((file, case["case"]), 0.0)
    return {case["case"]: case for case in cases}


CASES = {(file, name): case for file in FILES for name, case in load(file).items()}
every_case = pytest.mark.parametrize("key", CASES, ids=["-".join(key) for key in CASES])


def build_mbls(kwargs, **options):
    knobs = DEFAULTS["mbls"] | kwargs
    return MbLS(margin=knobs["margin"], strength=knobs["alpha"], over="mean", **options)


def build_acls(kwargs, **options):
    knobs = {"margin": 10.0} | DEFAULTS["acls"] | kwargs
    top, rest = (knobs["alpha"] * knobs[name] for name in ("pos_lambda", "neg_lambda"))
    return ACLSReleased(margin=knobs["margin"], top=top, rest=rest, **options)


def build_smoothing(kwargs, **options):
    return LabelSmoothing(smoothing=kwargs.get("alpha", 0.1), **options)


def build(key, **options):
    """Our class and knobs for a case."""
    file, kwargs = key[0], {k: v for k, v in CASES[key]["kwargs"].items() if k not in ("note", "reduction")}
    if file == "acls_repo_mbls_ls_ignore":
        makers = {"MbLS": build_mbls, "LabelSmoothingCrossEntropy": build_smoothing}
        return makers[kwargs.pop("cls")](kwargs, **options)
    if file == "label_relaxation":
        return LabelRelaxation(alpha=kwargs["alpha"], **options)
    if file == "ce":
        return CrossEntropy(**options)
    return {"mbls": build_mbls, "acls": build_acls, "label_smoothing_mbls": build_smoothing}[file](kwargs, **options)


def worst(found, wanted):
    assert found.shape == wanted.shape
    return float((found - wanted).abs().max() / wanted.abs().max().clamp(min=1.0))


@pytest.mark.parametrize("fused", [False, "auto"], ids=["autograd", "one_pass"])
@every_case
def test_value_and_gradient(key, fused):
    case = CASES[key]
    logits = case["logits"].clone().requires_grad_()
    value = build(key, reduction=case["kwargs"].get("reduction", "mean"), fused=fused)(logits, case["labels"])
    value = value.sum()  # of the cases with reduction="none" the sum is recorded
    value.backward()
    tolerance, _ = LOOSER.get(key, (EXACT, ""))
    assert worst(value.detach(), case["loss"]) <= tolerance
    assert worst(logits.grad, case["grad"]) <= tolerance


TERMED = [key for key, case in CASES.items() if len(case["terms"]) == 3]


@pytest.mark.parametrize("key", TERMED, ids=["-".join(key) for key in TERMED])
def test_terms(key):
    """The released code returns total, cross-entropy and a penalty without its strength alpha."""
    case = CASES[key]
    terms = build(key).terms(case["logits"], case["labels"])
    total, ce, penalty = case["terms"]
    alpha = case["kwargs"].get("alpha", 0.1)
    assert worst(terms["loss"], total) <= EXACT
    assert worst(terms["ce"], ce) <= EXACT
    assert worst(terms["penalty"], alpha * penalty) <= EXACT


def test_looser_cases_need_it():
    """A case listed as agreeing less closely really does."""
    for key, (tolerance, _) in LOOSER.items():
        case = CASES[key]
        off = worst(build(key)(case["logits"], case["labels"]), case["loss"])
        assert EXACT < off <= tolerance


def test_every_case_is_finite_and_named_once():
    assert len(CASES) == 40
    assert all(case["finite"] and "error" not in case for case in CASES.values())
