"""Redis is killed and comes back while a naive read-through and the kit's store go on reading and writing."""

from __future__ import annotations

import asyncio
import logging
import statistics
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import Any
from uuid import uuid4

import pandas as pd
from redis.exceptions import RedisError

from tri_memory.engines import Engine
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.lab.chapters.ch12 import place
from tri_memory.lab.chapters.ch12.book import PhoneBook

USERS = 20
LIMIT_S, PAUSE_S = 0.25, 0.5
ALIVE, DEAD, BACK = "Redis is there", "killed", "back again"
NAIVE = "naive, errors ignored"
KITS = {"the kit's, check_s=60": 60.0, "the kit's, check_s=0.5": 0.5}  # the default, and a short one


class Careless:
    """The naive read-through, Postgres first and then delete, that goes on when Redis doesn't answer."""

    def __init__(self, cache: Any, book: PhoneBook) -> None:
        self._cache, self._book = cache, book

    async def read(self, user: str) -> str:
        kept = None
        with suppress(RedisError, OSError):
            kept = await self._cache.get(user)
        if kept is not None:
            return str(kept)
        number = await self._book.read(user)
        with suppress(RedisError, OSError):
            await self._cache.set(user, number, ex=60)
        return number

    async def write(self, user: str, number: str) -> None:
        await self._book.write(user, number)
        with suppress(RedisError, OSError):
            await self._cache.delete(user)


@contextmanager
def heard() -> Iterator[list[str]]:
    """What the cache warns of meanwhile, which goes here instead of to the log."""
    said: list[str] = []
    log = logging.getLogger("tri_memory.entity.cache_calls")
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    try:
        yield said
    finally:
        log.removeHandler(handler)


async def outage(engine: Engine, records: PostgresUserMemoryStore) -> pd.DataFrame:
    """Three phases for each way: every user is read twice, gets a new number, and is read by another process's store.

    `engine` is an embedded Redis that nobody else uses. It is back for 0.5 s before it is read again. Columns: median
    ms of a user's first read and of the second, longest ms, answers that were old, writes that were lost.
    """
    rows: list[tuple[Any, ...]] = []
    prefix, truth = f"dead:{uuid4().hex}:", PhoneBook(records)
    options: dict[str, Any] = {"prefix": prefix, "limit_s": LIMIT_S, "pause_s": PAUSE_S}
    async with AsyncExitStack() as stack:
        careless = Careless(await stack.enter_async_context(place.client(engine.url)), truth)
        ways: dict[str, tuple[Any, Any]] = {NAIVE: (careless, careless)}
        for way, check_s in KITS.items():
            two = [CachedUserMemoryStore.from_url(records, engine.url, check_s=check_s, **options) for _ in range(2)]
            ways[way] = (
                PhoneBook(await stack.enter_async_context(two[0])),
                PhoneBook(await stack.enter_async_context(two[1])),
            )
        for phase in (ALIVE, DEAD, BACK):
            if phase == DEAD:
                await asyncio.to_thread(engine.kill)
            if phase == BACK:
                await asyncio.to_thread(engine.start)
                await asyncio.sleep(PAUSE_S)
            for way, (writer, reader) in ways.items():
                users = [f"{prefix}{way}{n}" for n in range(USERS)]
                rows.append((way, phase, *await _phase(users, phase, writer, reader, truth)))
        for way in ways:
            for n in range(USERS):
                await records.forget(f"{prefix}{way}{n}")
    names = ["way", "phase", "first read (ms)", "second (ms)", "longest (ms)", "old answers", "writes lost"]
    return pd.DataFrame(sorted(rows, key=lambda row: list(ways).index(row[0])), columns=names).set_index(names[:2])


async def _phase(users: list[str], phase: str, writer: Any, reader: Any, truth: PhoneBook) -> tuple[Any, ...]:
    """While Redis is dead the users get a new number; in the other phases they are only read."""
    if phase != BACK:
        for n, user in enumerate(users):
            await writer.write(user, f"{phase} {n}")
    taken: tuple[list[float], list[float]] = ([], [])
    old = lost = 0
    for its in taken:  # the first time fills, where there is anything to fill
        for n, user in enumerate(users):
            wrote = f"{ALIVE if phase == ALIVE else DEAD} {n}"
            started = time.perf_counter()
            answer = await reader.read(user)
            its.append(1e3 * (time.perf_counter() - started))
            old += answer != wrote
    for n, user in enumerate(users):
        lost += await truth.read(user) != f"{ALIVE if phase == ALIVE else DEAD} {n}"
    first, second = (round(statistics.median(its), 2) for its in taken)
    reads = len(taken[0] + taken[1])
    return first, second, round(max(taken[0] + taken[1]), 1), f"{old} of {reads}", f"{lost} of {len(users)}"
