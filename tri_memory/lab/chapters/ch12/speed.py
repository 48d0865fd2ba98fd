"""What a read costs: a bare GET, a hit, Postgres itself, a miss that fills, and a hit that can't be had."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pandas as pd

from tri_memory.engines.port import free_port
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.lab.chapters.ch12 import place

GET, HIT, POSTGRES, MISS, DEAD = "bare GET", "hit", "Postgres", "miss, and fill", "dead cache"
WAYS = (GET, HIT, POSTGRES, MISS, DEAD)
RECORDS = (1, 20, 200)
ROUNDS, READS = 7, 15
_CONTENT = {"status": "open", "device": "PUMP-17", "note": "说好退款，等仓库确认", "told": "Refund agreed, waiting."}


async def compare(url: str, records: PostgresUserMemoryStore, sizes: Sequence[int] = RECORDS) -> pd.DataFrame:
    """Milliseconds a read of all cases of a user: records, way, round, ms (the median of 15 reads). In each round every
    way has its turn, so that a busy moment hits all of them."""
    rows: list[tuple[int, str, int, float]] = []
    prefix = f"{place.prefix()}speed:"
    nobody = f"redis://127.0.0.1:{free_port()}"
    async with (
        place.client(url) as cache,
        CachedUserMemoryStore.from_url(records, url, prefix=prefix, limit_s=5) as store,
        CachedUserMemoryStore.from_url(records, nobody, prefix=prefix, limit_s=0.05, pause_s=600) as dead,
    ):
        for size in sizes:
            user = f"{prefix}{size}"
            for number in range(size):
                await records.put(user, "case", f"BX-{2_000 + number}", _CONTENT)
            await store.find(user, memory_type="case", limit=size)
            [key] = [key async for key in cache.scan_iter(f"{prefix}*:case:*", count=1_000)]
            ways = _ways(user, size, key, cache, store, records, dead)
            for calls in ways.values():
                await _ms(*calls, 3)
            for n in range(ROUNDS):
                rows += [(size, way, n, await _ms(*calls, READS)) for way, calls in ways.items()]
            await store.forget(user)
    return pd.DataFrame(rows, columns=["records", "way", "round", "ms"])


Calls = tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]


def _ways(
    user: str, size: int, key: str, cache: Any, store: CachedUserMemoryStore, records: Any, dead: CachedUserMemoryStore
) -> dict[str, Calls]:
    """Of each way what is timed, and what is done before it without being timed."""

    async def nothing() -> None:
        return None

    async def unlink() -> None:
        await cache.unlink(key)

    def find(where: Any) -> Callable[[], Awaitable[Any]]:
        return lambda: where.find(user, memory_type="case", limit=size)

    return {
        GET: (lambda: cache.get(key), nothing),
        HIT: (find(store), nothing),
        POSTGRES: (find(records), nothing),
        MISS: (find(store), unlink),
        DEAD: (find(dead), nothing),
    }


async def _ms(call: Callable[[], Awaitable[Any]], before: Callable[[], Awaitable[Any]], times: int) -> float:
    taken = []
    for _ in range(times):
        await before()
        started = time.perf_counter()
        await call()
        taken.append(1e3 * (time.perf_counter() - started))
    return statistics.median(taken)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """The median of the rounds by way and number of records, and the shortest and longest round."""
    by = table.groupby(["way", "records"], sort=False).ms
    text = by.median().map("{:.2f}".format) + " (" + by.min().map("{:.2f}".format) + "–" + by.max().map("{:.2f}".format)
    return (text + ")").unstack("records").rename_axis(columns="records of the user, ms")


def medians(table: pd.DataFrame, size: int) -> dict[str, float]:
    """Milliseconds by way, of so many records."""
    return {str(way): float(ms) for way, ms in table[table.records == size].groupby("way").ms.median().items()}


def break_even(ms: dict[str, float]) -> float:
    """The hit rate from which the cache is faster on average than Postgres alone; above 1 where it never is."""
    gain = ms[MISS] - ms[HIT]
    return (ms[MISS] - ms[POSTGRES]) / gain if gain > 0 and ms[HIT] < ms[POSTGRES] else float("inf")


def needed(table: pd.DataFrame) -> dict[int, str]:
    """By number of records, the hit rate from which the cache is faster on average."""
    shares = {int(size): break_even(medians(table, size)) for size in sorted(set(table.records))}
    return {size: "never faster" if share > 1 else f"{100 * max(0.0, share):.0f} %" for size, share in shares.items()}
