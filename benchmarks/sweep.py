"""What a sweep costs over the bare function: 200 cells of about 0.1 s of plain Python on all cores.

The bare function is what no pool reaches: the seconds inside the function, as the workers measured them, shared evenly
by the cores. So everything else counts: the code's version, starting Python a core, the pipes, the cache, the table,
and a core that is idle at the end.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping

import joblib

from benchmarks.sweep_cell import work
from benchmarks.timing import Row
from tri_memory.lab.sweep import sweep

CELLS = 200


def rows() -> Iterator[Row]:
    os.environ["TQDM_DISABLE"] = "1"
    trial = 200_000
    steps = int(trial * 0.1 / work(1, 0, trial)["busy"])
    grid = {"k": range(CELLS // 10), "steps": [steps]}
    with tempfile.TemporaryDirectory() as folder:
        cold, first = _timed(grid, folder)
        kept, second = _timed(grid, folder)
    yield Row(
        f"sweep of {CELLS} cells, cold start", cold * 1e6, "sum of the cells / cores", first * 1e6, cold / first, 1.05
    )
    yield Row("the same, from the cache", kept * 1e6, "sum of the cells / cores", second * 1e6, kept / second, 0.05)


def _timed(grid: Mapping[str, Iterable[int]], folder: str) -> tuple[float, float]:
    """(wall seconds of the sweep, seconds of its cells shared by all cores)."""
    started = time.perf_counter()
    table = sweep(work, grid, seeds=10, cache=folder)
    return time.perf_counter() - started, float(table.seconds.sum()) / joblib.cpu_count()
