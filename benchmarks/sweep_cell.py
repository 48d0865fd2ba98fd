"""The function that the sweep runs, in a file of its own: a worker that imports it need not import pandas as well."""

from __future__ import annotations

import time


def work(k: int, seed: int, steps: int) -> dict[str, float]:
    """About 0.1 s of plain Python, `steps` having been measured for it; processor seconds."""
    started = time.process_time()
    total = 0
    for i in range(steps):
        total += i & k
    return {"total": total, "busy": time.process_time() - started}
