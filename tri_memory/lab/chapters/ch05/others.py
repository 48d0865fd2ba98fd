"""How long everybody else waits while somebody looks for a few keys among many: KEYS against SCAN."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from redis import asyncio as aioredis

from tri_memory.lab.claims import Outcome
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, row_of_axes

FOUND = 20
LIFE_S = 120
_FILL = """
for i = ARGV[2], ARGV[3] do redis.call('SET', ARGV[1] .. i, '', 'EX', ARGV[4]) end
"""
WAYS: dict[str, tuple[int, str]] = {  # COUNT, colour
    "nobody searches": (-1, GREY),
    "KEYS": (0, ORANGE),
    "SCAN, COUNT 1,000": (1_000, BLUE),
    "SCAN, COUNT 100,000": (100_000, GREEN),
}


async def waits(url: str, prefix: str, sizes: Sequence[int], repetitions: int = 5) -> pd.DataFrame:
    """One row a size, a way to search and a repetition: the longest time that another client's PING took (ms), and how
    long the search took (ms). `sizes` are numbers of keys in the server, rising; they are gone afterwards."""
    rows = []
    searcher = aioredis.Redis.from_url(url, socket_timeout=30)
    other = aioredis.Redis.from_url(url, socket_timeout=30)
    try:
        await _fill(searcher, f"{prefix}find:", 1, FOUND)
        there = FOUND
        for size in sizes:
            await _fill(searcher, f"{prefix}bulk:", there + 1, size)
            there = size
            for repetition in range(repetitions):
                for way, (count, _) in WAYS.items():
                    rows.append((size, way, repetition, *await _one(searcher, other, f"{prefix}find:*", count)))
    finally:
        await _remove(searcher, f"{prefix}*")
        await searcher.aclose()
        await other.aclose()
    return pd.DataFrame(rows, columns=["keys", "way", "repetition", "longest_ms", "search_ms"])


async def _fill(client: Any, prefix: str, first: int, last: int) -> None:
    """In batches, as a guest should."""
    for start in range(first, last + 1, 5_000):
        await client.eval(_FILL, 0, prefix, start, min(start + 4_999, last), LIFE_S)


async def _remove(client: Any, pattern: str) -> None:
    cursor = -1
    while cursor:
        cursor, batch = await client.scan(max(cursor, 0), match=pattern, count=5_000)
        if batch:
            await client.unlink(*batch)


async def _one(searcher: Any, other: Any, pattern: str, count: int) -> tuple[float, float]:
    done = asyncio.Event()
    pings: list[float] = []

    async def keep_pinging() -> None:
        while not done.is_set() or not pings:
            started = time.perf_counter()
            await other.ping()
            pings.append(time.perf_counter() - started)

    pinging = asyncio.ensure_future(keep_pinging())
    await asyncio.sleep(0.005)
    started = time.perf_counter()
    found = await _search(searcher, pattern, count)
    took = time.perf_counter() - started
    done.set()
    await pinging
    if count >= 0 and found != FOUND:
        raise RuntimeError(f"the search found {found} keys, not {FOUND}")
    return max(pings) * 1e3, took * 1e3


async def _search(client: Any, pattern: str, count: int) -> int:
    if count < 0:
        await asyncio.sleep(0.05)
        return 0
    if count == 0:
        return len(await client.keys(pattern))
    return len({key async for key in client.scan_iter(pattern, count=count)})


def plot_waits(table: pd.DataFrame) -> Figure:
    """Longest wait of the others and time of the search, against the number of keys: a dot a repetition."""
    figure, (left, right) = row_of_axes(2, 10.4, 4.2)
    for way, (_, colour) in WAYS.items():
        rows = table[table["way"] == way]
        for ax, column in ((left, "longest_ms"), (right, "search_ms")):
            if ax is right and way == "nobody searches":
                continue
            ax.plot(rows["keys"] / 1e3, rows[column], "o", color=colour, alpha=0.35, markersize=5)
            median = rows.groupby("keys")[column].median()
            ax.plot(median.index / 1e3, median, color=colour, label=way if ax is left else None)
    left.set(title="The others' longest wait", xlabel="keys in the server (thousands)", ylabel="PING (ms)")
    right.set(title="The search itself", xlabel="keys in the server (thousands)", ylabel="time (ms)")
    for ax in (left, right):
        ax.set_ylim(bottom=0)
    figure.legend(loc="outside lower center", ncols=4, fontsize=11)
    return figure


def waits_verdict(table: pd.DataFrame | None) -> Outcome:
    """Blocking is at least three times the wait of a server that nobody searches, at the most keys."""
    if table is None:
        return "cannot be tested here"
    most = table[table["keys"] == table["keys"].max()]
    wait = most.groupby("way")["longest_ms"].median()
    blocks = {way: bool(wait[way] > 3 * wait["nobody searches"]) for way in WAYS}
    scans = [blocks[way] for way in WAYS if way.startswith("SCAN")]
    if not blocks["KEYS"] or all(scans):
        return "fails"
    return "depends" if any(scans) else "holds"


def waits_sentence(table: pd.DataFrame | None) -> str:
    """What was measured about claim C16: medians, least and most in brackets. None where nothing could be."""
    if table is None:
        return "nothing: the only server here is somebody's own, and 200,000 keys don't belong there"
    most = table[table["keys"] == table["keys"].max()]
    parts = []
    for way in WAYS:
        waits_ms = most[most["way"] == way]["longest_ms"]
        parts.append(f"{way}: {waits_ms.median():.1f} ms ({waits_ms.min():.1f} to {waits_ms.max():.1f})")
    return f"the longest PING of another client, with {table['keys'].max():,} keys. " + "; ".join(parts)
