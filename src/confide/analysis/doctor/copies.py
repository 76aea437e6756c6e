"""Rows that occur twice, as a distributed sampler leaves them when it pads the last batch."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from confide.analysis.doctor.batch import HALF, Finding, Setting, where

MOST = 1 << 18  # rows that are remembered
MANY = 1e-3  # share of rows; below it the data themselves may hold a few rows twice
FEW, FEW_HALF = 3, 8  # classes below which equal rows may be chance, in float32 and in half precision


class Copies:
    """Equal rows of scores. Round numbers (four decimals) and saturated rows may be equal by chance: not compared.

    A row is remembered by its hash. When there are too many, those whose hash is not divisible by 2, 4, 8, ... are
    forgotten, which treats both copies of a row alike.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.seen: dict[int, int] = {}
        self.count, self.every, self.compared = 0, 1, 0
        self.pair, self.rows, self.latest = (-1, -1), 0, -1
        self.coarse = setting.classes < (FEW_HALF if setting.dtype in HALF else FEW)

    @property
    def fine(self) -> str:
        """What could be compared."""
        part = f" (one row of {self.every} compared)" if self.every > 1 else ""
        return f"no row occurs twice{part}" if self.compared else ""

    def observe(self, scores: Tensor, origin: tuple[int, ...]) -> None:
        """Rows as they were read; a volume comes in parts, which may be empty alike."""
        if self.coarse or len(origin) > 1:
            return
        rows = scores.reshape(len(scores), -1)
        self.rows += len(rows)
        scaled = rows[:, :4096].double() * 1e4
        generic = ((scaled - scaled.round()).abs() > 1e-3).sum(1) >= min(2, rows.shape[1])
        lowest = (rows[:, :4096] == rows[:, :4096].amin(1, keepdim=True)).sum(1)
        generic &= (lowest == 1) | (scores.dim() > 2)  # a saturated softmax gives few different rows
        for i in generic.nonzero().squeeze(1).tolist():
            self._see(hash(rows[i].contiguous().numpy().tobytes()), origin[0] + i)

    def _see(self, key: int, row: int) -> None:
        if key % self.every:
            return
        self.compared += 1
        before = self.seen.setdefault(key, row)
        if before != row:
            self.pair = self.pair if self.count else (before, row)
            self.count, self.latest = self.count + 1, row
        elif len(self.seen) > MOST:
            self.every *= 2
            self.seen = {k: r for k, r in self.seen.items() if k % self.every == 0}

    def findings(self) -> Iterator[Finding]:
        if not self.count:
            return
        padded = self.latest == self.rows - 1
        about = f" (one row of {self.every} compared)" if self.every > 1 else ""
        yield Finding(
            "duplicates",
            padded or self.count > MANY * self.rows / self.every,
            f"{self.count:,} rows repeat the scores of an earlier row{about}, first {where((self.pair[1],))}, which "
            f"repeats {where((self.pair[0],))}",
            "They are counted twice, and intervals come out too narrow.",
            "The last row is among them: a distributed sampler pads its last batch with copies. Drop them by sample "
            "id, or cut the file to the size of the data set."
            if padded
            else "Look whether the data hold these twice, or whether parts of the file were joined twice.",
            self.count,
            (self.pair[1],),
        )
