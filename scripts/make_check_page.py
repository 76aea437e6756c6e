"""The predictions, the text and the picture in docs/check.md: two networks of the demo, cross-entropy and MbLS.

Usage: python scripts/make_check_page.py FOLDER [PICTURE.png]

FOLDER gets crossentropy.npz, mbls.npz and report.html; the picture needs Chromium or Chrome.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from confide.data.fashion import CLASSES, load
from confide.study.demo import CONTENDERS, run

FILES = {"Cross-entropy": "crossentropy.npz", "MbLS": "mbls.npz"}
KINDS = np.array(["clothes", "clothes", "clothes", "clothes", "clothes", "shoes", "clothes", "shoes", "bags", "shoes"])
SIZE = (1120, 1130)


def predict(folder: Path) -> None:
    """Train, and save what the networks say about the test images."""
    chosen = {name: CONTENDERS[name] for name in FILES}
    for one in run(load(), contenders=chosen, seeds=(0,)):
        y = one.labels.numpy()
        np.savez(
            folder / FILES[one.method],
            logits=one.logits.numpy(),
            labels=y,
            kind=KINDS[y],
            class_names=np.array(CLASSES),
        )


def check(folder: Path) -> None:
    """Print what the command prints."""
    words = ["check", "crossentropy.npz", "--group", "kind", "--report", "report.html"]
    subprocess.run([Path(sys.executable).with_name("confide"), *words], cwd=folder, check=True)


def photograph(page: Path, picture: Path) -> None:
    """The first screen of the report."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise SystemExit("no Chromium or Chrome is installed")
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=2000"]
    words += [f"--window-size={SIZE[0]},{SIZE[1]}", f"--screenshot={picture.resolve()}", page.resolve().as_uri()]
    subprocess.run([browser, *words], check=True, capture_output=True)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    predict(target)
    check(target)
    if len(sys.argv) > 2:
        photograph(target / "report.html", Path(sys.argv[2]))
