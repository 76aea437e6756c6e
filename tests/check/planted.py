"""Predictions whose truth is known, and the command as its users call it."""

import json
import sys

import numpy as np
import pytest
import torch

from confide.cli.main import main


def rows(n=4000, classes=5, sharper=2.0, seed=0):
    """Logits that are `sharper` times those that the labels were drawn from."""
    generator = torch.Generator().manual_seed(seed)
    z = 2 * torch.randn(n, classes, generator=generator)
    y = torch.multinomial(z.softmax(1), 1, generator=generator).squeeze(1)
    return (sharper * z).numpy(), y.numpy()


def images(n=6, classes=3, size=24, seed=0):
    """Logits (n, C, H, W) and labels with a border that is ignored."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, classes, size, size, generator=generator)
    flat = z.movedim(1, -1).reshape(-1, classes).softmax(1)
    y = torch.multinomial(flat, 1, generator=generator).reshape(n, size, size)
    y[:, :2] = 255
    z[0] *= 6  # the worst one
    return z.numpy(), y.numpy()


def call(capsys, monkeypatch, *words):
    """Run the command in this process: exit code, stdout, stderr."""
    monkeypatch.setattr(sys, "argv", ["confide", *map(str, words)])
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code or 0, *capsys.readouterr()


def checked(capsys, monkeypatch, *words):
    """The document that `confide check --json -` prints."""
    code, out, error = call(capsys, monkeypatch, "check", *words, "--json", "-")
    assert code in (0, 1), error
    return json.loads(out)


def saved(folder, name="preds.npz", **columns):
    """A file of predictions in a folder."""
    z, y = rows()
    arrays = {"logits": z, "labels": y} | columns
    np.savez(folder / name, **arrays)
    return folder / name
