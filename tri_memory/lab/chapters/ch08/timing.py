"""What a write and a query take on this machine (claim C17), and what the index adds to a write."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pandas as pd

from tri_memory.contracts import EpisodicRecord
from tri_memory.lab.chapters.ch08.table import EpisodeTable
from tri_memory.lab.claims import Outcome
from tri_memory.lab.datasets import FIRST_DAY

CLAIMED_MS = (23, 86)  # a write, a query
WRITER = "lesson-writer"  # whose rows are forgotten again


def write_and_query(table: EpisodeTable, seeds: Sequence[int], calls: int = 15) -> pd.DataFrame:
    """A row a seed: the median ms of `remember` and of `recall` with the index, and of `remember` without it."""
    found = []
    for index in (True, False):
        if not index:
            table.drop_index()
        for seed in seeds:
            found.append((index, seed, _writes(table, seed, calls), _queries(table, seed, calls)))
            table.store.forget(WRITER)
    table.build_index()
    return pd.DataFrame(found, columns=["index", "seed", "write_ms", "query_ms"])


def _writes(table: EpisodeTable, seed: int, calls: int) -> float:
    random = np.random.default_rng(seed)
    took = []
    for at, row in enumerate(random.choice(len(table.people.vectors), calls, replace=False)):
        record = EpisodicRecord(WRITER, f"{seed}-{at}", "a visit", table.people.vectors[row], FIRST_DAY + timedelta(at))
        started = time.perf_counter()
        table.store.remember(record)
        took.append(time.perf_counter() - started)
    return 1e3 * float(np.median(took))


def _queries(table: EpisodeTable, seed: int, calls: int) -> float:
    random = np.random.default_rng(seed)
    took = []
    for user in random.choice(table.people.users, calls):
        query = table.people.queries(str(user), 1, seed)[0]
        started = time.perf_counter()
        table.store.recall(query, 3, user_id=str(user))
        took.append(time.perf_counter() - started)
    return 1e3 * float(np.median(took))


def verdict(measured: pd.DataFrame) -> Outcome:
    """It holds where both medians are within a factor of two of the claimed ones; else times depend on the machine."""
    rows = measured[measured["index"]]
    ratios = (rows.write_ms.median() / CLAIMED_MS[0], rows.query_ms.median() / CLAIMED_MS[1])
    return "holds" if all(0.5 <= ratio <= 2 for ratio in ratios) else "depends"


def sentence(measured: pd.DataFrame) -> str:
    """What `write_and_query` found about claim C17."""
    rows = measured[measured["index"]]
    write, query = rows.write_ms, rows.query_ms
    return (
        f"a write took {write.median():.1f} ms and a query {query.median():.1f} ms (medians of {len(rows)} seeds; "
        f"{write.min():.1f} to {write.max():.1f}, {query.min():.1f} to {query.max():.1f}), on loopback, in a table of "
        "4,000 rows, without the time of the embedder"
    )
