"""What extraction costs a turn, beside the limit of 1,000 turns a second; and what the rules cost as a text grows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from itertools import cycle

from benchmarks.timing import Row, paired
from tri_memory.entity.extract import extract
from tri_memory.lab import datasets

TURNS_A_SECOND = 1_000
LONG = 200_000  # characters
ROUNDS = 5


def rows() -> Iterator[Row]:
    texts = [turn.content for name in ("en", "zh") for s in datasets.load(name).sessions for turn in s.turns]
    yield _a_turn(texts)
    yield _growth(texts)


def _a_turn(texts: list[str]) -> Row:
    limit_us = 1e6 / TURNS_A_SECOND
    seconds = []
    for _ in range(ROUNDS + 1):  # the first warms up
        started = time.perf_counter()
        for text in texts:
            extract(text)
        seconds.append(time.perf_counter() - started)
    ours_us = statistics.median(seconds[1:]) / len(texts) * 1e6
    return Row(
        f"entities of a turn of {sum(map(len, texts)) / len(texts):.0f} characters",
        ours_us,
        f"{TURNS_A_SECOND:,} turns a second",
        limit_us,
        ours_us / limit_us,
        1.0,
    )


def _growth(texts: list[str]) -> Row:
    """Twenty times the text, twenty times the time: the ratio of one character's time is 1."""
    long = ""
    parts = cycle(texts)
    while len(long) < LONG:
        long += next(parts) + "\n"
    short = long[: LONG // 20]
    return paired(
        f"entities of a text of {LONG:,} characters, a twentieth of it",
        lambda: extract(long),
        "of the twentieth itself",
        lambda: [extract(short) for _ in range(20)],
        units=20,
        rounds=ROUNDS,
        goal=1.5,
    )
