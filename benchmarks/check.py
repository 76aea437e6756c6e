"""Time and memory of `confide check`, beside reading the same file and one softmax over it.

Usage: OMP_NUM_THREADS=1 python benchmarks/check.py FOLDER    (needs 2 GB there, and a minute)
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from confide.data.predictions import Predictions
from confide.report.check.gathering import Options, gather, open_checked

ROUNDS = 7
PEAK = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, capture_output=True); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)"
)


def write(path: Path, rows: int, classes: int, right: float = 0.8) -> Path:
    """Confident logits, of which a share is right, a part at a time; labels stand beside."""
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (rows, classes))
    labels = np.empty(rows, np.int64)
    for start in range(0, rows, 100_000):
        z = rng.standard_normal((min(100_000, rows - start), classes), np.float32)
        guess = z.argmax(1)
        z[np.arange(len(z)), guess] += 8
        wrong = rng.random(len(z)) >= right
        labels[start : start + len(z)] = np.where(wrong, rng.integers(0, classes, len(z)), guess)
        out[start : start + len(z)] = z
    np.save(path.with_name(path.name.replace("logits", "labels")), labels)
    return path


def plain(found: Predictions) -> None:
    for chunk in found.chunks():
        chunk.scores.softmax(1)


def median(run: Callable[[], object], clock: Callable[[], float]) -> Callable[[], float]:
    """Seconds of each of several calls; their median so far."""
    times: list[float] = []

    def once() -> float:
        start = clock()
        run()
        times.append(clock() - start)
        return statistics.median(times)

    return once


def speed(folder: Path) -> None:
    path = write(folder / "wide_logits.npy", 50_000, 1000)
    found = open_checked(path, Options())
    contenders = [
        median(lambda: plain(found), time.process_time),
        median(lambda: gather(found, Options()), time.process_time),
    ]
    command = [str(Path(sys.executable).with_name("confide")), "check", str(path), "--report", str(folder / "x.html")]
    contenders.append(median(lambda: subprocess.run(command, check=True, capture_output=True), time.perf_counter))
    for _ in range(ROUNDS):
        reading, gathering, whole = (contender() for contender in contenders)
    print(f"50,000 x 1000: reading and softmax {reading:.3f} s of CPU; gathering {gathering:.3f} s,")
    print(f"{gathering / reading:.1f} times as much; the command with its report {whole:.1f} s by the clock")


def memory(folder: Path) -> None:
    for rows in (20_000, 4_000_000):
        path = write(folder / f"{rows}_logits.npy", rows, 100)
        command = [str(Path(sys.executable).with_name("confide")), "check", str(path)]
        done = subprocess.run([sys.executable, "-c", PEAK, *command], check=True, capture_output=True, text=True)
        print(f"{path.stat().st_size / 1e6:,.0f} MB of logits: peak {int(done.stdout):,} MB")
        path.unlink()


if __name__ == "__main__":
    speed(Path(sys.argv[1]))
    memory(Path(sys.argv[1]))
