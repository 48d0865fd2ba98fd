"""Redis is killed and comes back while a naive read-through and the kit's store go on reading and writing."""

from __future__ import annotations

import asyncio
import logging
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
LIMIT_S, PAUSE_S, CHECK_S = 0.25, 0.5, 0.5
ALIVE, DEAD, BACK = "Redis is there", "killed", "back again"
NAIVE, KIT = "naive, errors ignored", "the kit's store"


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

    `engine` is an embedded Redis that nobody else uses. Columns: median and longest ms of a read, answers that were
    old, writes that were lost.
    """
    rows: list[tuple[Any, ...]] = []
    prefix, truth = f"dead:{uuid4().hex}:", PhoneBook(records)
    options: dict[str, Any] = {"prefix": prefix, "limit_s": LIMIT_S, "pause_s": PAUSE_S, "check_s": CHECK_S}
    async with (
        place.client(engine.url) as cache,
        CachedUserMemoryStore.from_url(records, engine.url, **options) as one,
        CachedUserMemoryStore.from_url(records, engine.url, **options) as other,
    ):
        careless = Careless(cache, truth)
        ways = {NAIVE: (careless, careless), KIT: (PhoneBook(one), PhoneBook(other))}
        for phase in (ALIVE, DEAD, BACK):
            if phase == DEAD:
                await asyncio.to_thread(engine.kill)
            if phase == BACK:
                await asyncio.to_thread(engine.start)
                await asyncio.sleep(PAUSE_S)
            for way, (writer, reader) in ways.items():
                users = [f"{prefix}{way[:3]}{n}" for n in range(USERS)]
                rows.append((way, phase, *await _phase(users, phase, writer, reader, truth)))
        for way in ways:
            for n in range(USERS):
                await records.forget(f"{prefix}{way[:3]}{n}")
    names = ["way", "phase", "read (median ms)", "read (longest ms)", "old answers", "writes lost"]
    return pd.DataFrame(rows, columns=names).set_index(["way", "phase"]).sort_index(level="way", sort_remaining=False)


async def _phase(users: list[str], phase: str, writer: Any, reader: Any, truth: PhoneBook) -> tuple[Any, ...]:
    """While Redis is dead the users get a new number; in the other phases they are only read."""
    if phase != BACK:
        for n, user in enumerate(users):
            await writer.write(user, f"{phase} {n}")
    taken, old, lost = [], 0, 0
    for _ in range(2):  # the first time fills, where there is anything to fill
        for n, user in enumerate(users):
            wrote = f"{ALIVE if phase == ALIVE else DEAD} {n}"
            started = time.perf_counter()
            answer = await reader.read(user)
            taken.append(1e3 * (time.perf_counter() - started))
            old += answer != wrote
    for n, user in enumerate(users):
        lost += await truth.read(user) != f"{ALIVE if phase == ALIVE else DEAD} {n}"
    return round(statistics.median(taken), 2), round(max(taken), 1), f"{old} of {len(taken)}", f"{lost} of {len(users)}"
