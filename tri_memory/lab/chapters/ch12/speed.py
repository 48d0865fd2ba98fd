"""What a read costs: a bare GET, a hit, one that asks for the version, Postgres, a miss that fills, a dead cache."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from tri_memory.engines.port import free_port
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.lab.chapters.ch12 import place

GET, HIT, DUE, POSTGRES = "bare GET", "hit", "hit, version due", "Postgres"
MISS, DEAD = "miss, and fill", "dead cache"
WAYS = (GET, HIT, DUE, POSTGRES, MISS, DEAD)
NEVER = float("inf")  # a hit rate that there can't be

Range = tuple[float, float]
RECORDS = (1, 20, 200)
ROUNDS, READS = 7, 15
_CONTENT = {"status": "open", "device": "PUMP-17", "note": "说好退款，等仓库确认", "told": "Refund agreed, waiting."}


async def compare(url: str, records: PostgresUserMemoryStore, sizes: Sequence[int] = RECORDS) -> pd.DataFrame:
    """Milliseconds a read of all cases of a user: records, way, round, ms (the median of 15 reads). In each round the
    ways take turns, so that a busy moment hits all of them."""
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
            its = [key async for key in cache.scan_iter(f"{prefix}*", count=1_000)]
            ways = _ways(user, size, its, cache, store, records, dead)
            await _round(ways)  # warms up
            for n in range(ROUNDS):
                rows += [(size, way, n, ms) for way, ms in (await _round(ways)).items()]
            await store.forget(user)
    return pd.DataFrame(rows, columns=["records", "way", "round", "ms"])


Calls = tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]


def _ways(
    user: str,
    size: int,
    its: Sequence[str],
    cache: Any,
    store: CachedUserMemoryStore,
    records: Any,
    dead: CachedUserMemoryStore,
) -> dict[str, Calls]:
    """Of each way what is timed, and what is done before it without being timed. `its` are all keys of the user: a
    miss finds none of them, as after their TTL."""
    [entry], [version] = ([key for key in its if part in key] for part in (":case:", ":version"))

    async def nothing() -> None:
        return None

    def gone(*keys: str) -> Callable[[], Awaitable[Any]]:
        return lambda: cache.unlink(*keys)

    def find(where: Any) -> Callable[[], Awaitable[Any]]:
        return lambda: where.find(user, memory_type="case", limit=size)

    return {
        GET: (lambda: cache.get(entry), nothing),
        HIT: (find(store), nothing),
        DUE: (find(store), gone(version)),
        POSTGRES: (find(records), nothing),
        MISS: (find(store), gone(*its)),
        DEAD: (find(dead), nothing),
    }


async def _round(ways: Mapping[str, Calls]) -> dict[str, float]:
    """Milliseconds by way, each the median of 15 reads; the ways take turns, another one first each time."""
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for n in range(READS):
        for i in range(len(WAYS)):
            way = WAYS[(n + i) % len(WAYS)]
            call, before = ways[way]
            await before()
            started = time.perf_counter()
            await call()
            taken[way].append(1e3 * (time.perf_counter() - started))
    return {way: statistics.median(ms) for way, ms in taken.items()}


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """The median of the rounds by way and number of records, and the shortest and longest round."""
    by = table.groupby(["way", "records"]).ms
    text = by.median().map("{:.2f}".format) + " (" + by.min().map("{:.2f}".format) + "–" + by.max().map("{:.2f}".format)
    return (text + ")").unstack("records").reindex(WAYS).rename_axis(columns="records of the user, ms")


def medians(table: pd.DataFrame, size: int) -> dict[str, float]:
    """Milliseconds by way, of so many records."""
    return {str(way): float(ms) for way, ms in table[table.records == size].groupby("way").ms.median().items()}


def break_even(ms: Mapping[str, float]) -> float:
    """The hit rate from which the cache is faster on average than Postgres alone; infinite where it never is."""
    gain = ms[MISS] - ms[HIT]
    return max(0.0, (ms[MISS] - ms[POSTGRES]) / gain) if gain > 0 and ms[HIT] < ms[POSTGRES] else NEVER


def needed(table: pd.DataFrame) -> dict[int, Range]:
    """By number of records, per cent of the reads that have to hit: the least and the most that a round says; of five
    rounds or more, without the lowest and the highest."""
    found: dict[int, Range] = {}
    for size, its in table.groupby("records"):
        rounds = its.pivot(index="round", columns="way", values="ms").to_dict("records")
        shares = sorted(100 * break_even(row) for row in rounds)
        if len(shares) > 4:
            shares = shares[1:-1]
        found[int(str(size))] = shares[0], shares[-1]
    return found


def said(its: Range) -> str:
    """A range of percentages in words."""
    low, high = ("never enough" if share == NEVER else f"{share:.0f} %" for share in its)
    return low if low == high else f"{low} to {high}"


def pays(need: Mapping[int, Range], there: Mapping[str, Range]) -> pd.DataFrame:
    """How often is read, by number of records: whether enough reads hit. Undecided where the ranges overlap."""

    def word(its: Range, least: Range) -> str:
        return "faster" if its[0] > least[1] else "slower" if its[1] < least[0] else "undecided"

    rows = {f"read {how}, {said(its)} hit": [word(its, least) for least in need.values()] for how, its in there.items()}
    names = [f"{size} record{'s' * (size > 1)}, {said(least)} needed" for size, least in need.items()]
    return pd.DataFrame.from_dict(rows, orient="index", columns=names)
