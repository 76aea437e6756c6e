"""What is refused says what was found and what to do; what has no values to look at is let through."""

import subprocess
import sys

import pytest
import torch

import confide
from confide.core.errors import InputError

Z = torch.randn(4, 5, 3, 6, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(4 * 3 * 6).reshape(4, 3, 6) % 5


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        (LABELS.unsqueeze(1).float(), r"target\.squeeze\(1\)\.long\(\)"),
        (Z.softmax(1).movedim(1, -1), r"its class axis seems to be last: target\.movedim\(-1, 1\)$"),
        (torch.nn.functional.one_hot(LABELS, 5), r"target\.movedim\(-1, 1\)\.float\(\)$"),
        (LABELS + 1, r"did you mean ignore_index=5\? No label is 0: if they count from 1, pass target - 1$"),
        (torch.where(LABELS == 3, 5, LABELS), r"did you mean ignore_index=5\?$"),
    ],
)
def test_targets_that_cannot_be_meant(target, hint):
    with pytest.raises(InputError, match=hint):
        confide.MbLS()(Z, target)


def test_a_row_that_only_adds_up_to_zero_is_not_ignored_in_silence():
    with pytest.raises(InputError, match=r"1 rows that are no class probabilities, first at \[0\]: \(-1, 1, 0\)"):
        confide.CrossEntropy()(torch.randn(2, 3), torch.tensor([[-1.0, 1, 0], [0, 0, 1]]))


@pytest.mark.parametrize("normalizer", [-1, float("nan"), float("inf"), "4"])
def test_normalizers_that_cannot_be_meant(normalizer):
    with pytest.raises(InputError, match="normalizer must be a finite number, 0 or more, got"):
        confide.MbLS()(Z, LABELS, normalizer=normalizer)


def test_weights_that_cannot_be_meant():
    with pytest.raises(InputError, match=r"weight asks for a gradient.*weight\.detach\(\)"):
        confide.MbLS(weight=torch.ones(5, requires_grad=True))
    criterion = confide.MbLS()
    with pytest.raises(InputError, match="one finite, non-negative number a class"):
        criterion.weight = -torch.ones(5)


def test_keywords_that_no_method_takes():
    with pytest.raises(TypeError, match=r"MbLS takes no index=; besides input and target it takes normalizer=$"):
        confide.MbLS()(Z, LABELS, index=LABELS)
    with pytest.raises(
        TypeError, match=r"NACL takes no index=; besides input and target it takes normalizer=, image=$"
    ):
        confide.NACL()(Z, LABELS, index=LABELS)


def test_meta_tensors_have_nothing_to_check():
    z = Z.to("meta").requires_grad_()
    confide.MbLS()(z, LABELS.to("meta")).backward()
    assert z.grad.shape == z.shape


def test_type_checkers_know_the_public_names(tmp_path):
    code = tmp_path / "user.py"
    code.write_text("import confide\nconfide.MbLS(margin=6.0)\nconfide.MbLs()\nconfide.MbLS(margn=6.0)\n")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "--follow-imports=silent", str(code)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout
    assert "user.py:2" not in found
    assert 'has no attribute "MbLs"' in found
    assert 'Unexpected keyword argument "margn"' in found
