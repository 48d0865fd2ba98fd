"""What remembering costs beside tokens: how long until a memory can be recalled, and how many bytes it takes."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Sequence
from uuid import uuid4

import numpy as np
import psycopg
import redis
from numpy.typing import ArrayLike, NDArray
from psycopg import sql

from tri_memory.clock import system_clock
from tri_memory.contracts import EpisodicRecord, EpisodicStore, shown
from tri_memory.episodic.memory import InMemoryEpisodicStore


async def write_to_recallable(store: EpisodicStore, vectors: ArrayLike, *, limit_s: float = 5.0) -> NDArray[np.float64]:
    """(n,) milliseconds from the call that writes a memory to the first recall that finds it, for each of `vectors`
    (n, d). They are written for a user of their own, who is forgotten at the end. TimeoutError after `limit_s` each.
    """
    user, lags = f"lag-{uuid4().hex}", []
    try:
        for number, vector in enumerate(np.asarray(vectors)):
            record = EpisodicRecord(user, f"s{number}", f"memory {number}", vector, system_clock())
            started = time.perf_counter()
            await store.remember(record)
            await asyncio.wait_for(_recalled(store, record), limit_s)
            lags.append(1e3 * (time.perf_counter() - started))
    finally:
        await store.forget(user)
    return np.array(lags)


async def _recalled(store: EpisodicStore, record: EpisodicRecord) -> None:
    """Of equal vectors the older comes first, so the new one may be anywhere among its like."""
    k = 1
    while True:
        found = await store.recall(record.embedding, k, user_id=record.user_id)
        if record.session_id in {one.session_id for one in found}:
            return
        k = min(2 * k, 1_000)
        await asyncio.sleep(0.001)


async def bytes_in_memory(records: Sequence[EpisodicRecord]) -> float:
    """Bytes a record in an `InMemoryEpisodicStore`, as Python's allocator counts them; texts count where they are new.

    Raises ValueError for no record. Not to be called while something else allocates.
    """
    if not records:
        raise ValueError("bytes a record need at least one record; got none")
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        store = InMemoryEpisodicStore()
        for record in records:
            await store.remember(record)
        return (tracemalloc.get_traced_memory()[0] - before) / len(records)
    finally:
        if not running:
            tracemalloc.stop()


def bytes_in_postgres(url: str, table: str) -> float:
    """Bytes a row of a table with all its indexes. ValueError where it holds none."""
    with psycopg.connect(url) as connection:
        size = connection.execute("SELECT pg_total_relation_size(%s::regclass)", (table,)).fetchone()
        rows = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
    if not (size and rows and rows[0]):
        raise ValueError(f"the table {shown(table)} holds no row")
    return float(size[0] / rows[0])


def bytes_in_redis(url: str, pattern: str) -> float:
    """Bytes a key that matches the glob `pattern`, as MEMORY USAGE counts them. ValueError where none does."""
    with redis.Redis.from_url(url) as client:
        sizes = [client.memory_usage(key, samples=0) or 0 for key in client.scan_iter(match=pattern, count=1_000)]
    if not sizes:
        raise ValueError(f"no key matches {shown(pattern)}")
    return float(np.mean(sizes))
