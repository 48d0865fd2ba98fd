"""What `import tri_memory` adds to an empty Python."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.timing import Row

ROUNDS = 15
GOAL_MS = 80


def rows() -> Iterator[Row]:
    pairs = [(_start("import tri_memory"), _start("pass")) for _ in range(ROUNDS + 1)][1:]
    ours, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    more_ms = statistics.median(a - b for a, b in pairs) * 1e3
    work = f"import tri_memory: {more_ms:.0f} ms more (goal: under {GOAL_MS})"
    yield Row(work, ours * 1e6, "empty Python", bare * 1e6, ours / bare, (bare + GOAL_MS / 1e3) / bare)


def _start(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started
