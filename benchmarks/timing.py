"""Paired timing: two pieces of work in turn, so that a machine that slows down slows both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table. Times in microseconds for one unit of work; `goal` is the ratio not to exceed."""

    work: str
    ours_us: float
    beside: str
    beside_us: float
    ratio: float
    goal: float

    @property
    def reached(self) -> bool:
        return self.ratio <= self.goal


def paired(
    work: str,
    ours: Callable[[], object],
    beside: str,
    theirs: Callable[[], object],
    *,
    units: int = 1,
    rounds: int = 15,
    goal: float,
) -> Row:
    """Run both in turn, `rounds` times after one warm-up; the ratio is the median of the ratios pair by pair."""
    ours(), theirs()
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(rounds)]
    mine, other = zip(*pairs, strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    return Row(work, statistics.median(mine) / units * 1e6, beside, statistics.median(other) / units * 1e6, ratio, goal)


def _seconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started
