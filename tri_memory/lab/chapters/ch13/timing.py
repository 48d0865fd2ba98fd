"""How long it takes to forget a user: 127 entries in three places, and one among those of others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

import pandas as pd

from tri_memory import ChatTurn, InMemoryPreferenceStore, PostgresPreferenceStore, RedisSessionStore
from tri_memory.contracts import PreferenceStore, SessionStore
from tri_memory.engines.postgres_connection import Connection, connect
from tri_memory.lab.chapters.ch11.tables import drop
from tri_memory.lab.claims import Outcome
from tri_memory.privacy.forget import Stores, forget_user

CLAIMED, CLAIMED_S = 127, 47.0
SIZES, REPEATS = (10, CLAIMED, 500), 3
OTHERS = (0, 500, 1_500)
MEMORY, REDIS, POSTGRES, ONE_BY_ONE = ENGINES = (
    "preferences in memory",
    "sessions in Redis",
    "preferences in Postgres",
    "the same one by one",
)
USER = "zh-shop-01"

Erase = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Timed:
    """A row a run: `sizes` has engine, records, seconds; `others` has engine, others, seconds, for one record."""

    sizes: pd.DataFrame
    others: pd.DataFrame

    def median(self, engine: str, records: int = CLAIMED) -> float:
        its = self.sizes[(self.sizes.engine == engine) & (self.sizes.records == records)]
        return float(its.seconds.median())

    def median_among(self, engine: str, others: int) -> float:
        its = self.others[(self.others.engine == engine) & (self.others.others == others)]
        return float(its.seconds.median())


async def timed(redis_url: str, postgres_url: str, *, repeats: int = REPEATS) -> Timed:
    """`forget_user` with its search afterwards; "one by one" deletes each record in a transaction of its own."""
    async with _places(redis_url, postgres_url) as places:
        sizes = [
            (engine, size, await place.forget(size))
            for engine, place in places.items()
            for size in SIZES
            for _ in range(repeats)
        ]
        others = []
        for among in OTHERS:
            for engine in (REDIS, POSTGRES):
                await places[engine].surround(among)
                others += [(engine, among, await places[engine].forget(1)) for _ in range(repeats)]
    return Timed(
        pd.DataFrame(sizes, columns=["engine", "records", "seconds"]),
        pd.DataFrame(others, columns=["engine", "others", "seconds"]),
    )


@dataclass
class _Place:
    """A store of one engine, how one of its records is written, and how a user's are erased."""

    write: Callable[[str, int], Awaitable[None]]
    erase: Erase
    others: int = 0

    async def forget(self, records: int) -> float:
        """Plant that many records of the user; the seconds it takes to be rid of them."""
        await self.write(USER, records)
        started = time.perf_counter()
        await self.erase()
        return time.perf_counter() - started

    async def surround(self, records: int) -> None:
        """So many records of other users beside them."""
        if records > self.others:
            await self.write(f"other-{records}", records - self.others)
            self.others = records


@asynccontextmanager
async def _places(redis_url: str, postgres_url: str) -> AsyncIterator[dict[str, _Place]]:
    table, prefix = f"lesson_{uuid4().hex}", f"lesson:{uuid4().hex}:"
    memory = InMemoryPreferenceStore()
    try:
        async with (
            PostgresPreferenceStore(postgres_url, table=table) as postgres,
            RedisSessionStore.from_url(redis_url, prefix=prefix) as redis,
            await connect(postgres_url) as connection,
        ):
            await postgres.all(USER)  # which creates the table
            try:
                yield {
                    MEMORY: _Place(_each_set(memory), _forgotten(Stores(preferences=memory))),
                    REDIS: _Place(_appended(redis), _forgotten(Stores(sessions=redis))),
                    POSTGRES: _Place(_inserted(connection, table), _forgotten(Stores(preferences=postgres))),
                    ONE_BY_ONE: _Place(_inserted(connection, table), _one_by_one(connection, table)),
                }
            finally:
                for row in await redis.list_sessions():
                    await redis.clear(row.session_id)
    finally:
        drop(postgres_url, table)


def _forgotten(stores: Stores) -> Erase:
    async def erase() -> None:
        receipt = await forget_user(USER, stores=stores)
        assert receipt.ok, receipt.to_text()

    return erase


def _each_set(store: PreferenceStore) -> Callable[[str, int], Awaitable[None]]:
    async def write(user: str, records: int) -> None:
        for number in range(records):
            await store.set(user, f"key {number}", "对芝麻过敏")

    return write


def _appended(store: SessionStore) -> Callable[[str, int], Awaitable[None]]:
    async def write(user: str, records: int) -> None:
        turn = ChatTurn("user", "对芝麻过敏")
        for begin in range(0, records, 100):
            batch = range(begin, min(begin + 100, records))
            await asyncio.gather(*(store.append(f"{user}/s{number}", turn) for number in batch))

    return write


def _inserted(connection: Connection, table: str) -> Callable[[str, int], Awaitable[None]]:
    async def write(user: str, records: int) -> None:
        await connection.execute(
            f"INSERT INTO {table} (user_id, key, value) "
            "SELECT %s, 'key ' || n, '对芝麻过敏' FROM generate_series(1, %s) AS n",
            [user, records],
        )

    return write


def _one_by_one(connection: Connection, table: str) -> Erase:
    async def erase() -> None:
        rows = await (await connection.execute(f"SELECT key FROM {table} WHERE user_id = %s", [USER])).fetchall()
        for (key,) in rows:
            await connection.execute(f"DELETE FROM {table} WHERE user_id = %s AND key = %s", [USER, key])

    return erase


def sentence(its: Timed) -> str:
    """What was measured, for the claim."""
    said = ", ".join(f"{engine} {_readable(its.median(engine))}" for engine in ENGINES)
    alone, among = its.median_among(REDIS, 0), its.median_among(REDIS, max(OTHERS))
    return (
        f"{CLAIMED} entries: {said} (medians, with the search afterwards, which the one-by-one row has not). "
        f"{CLAIMED_S:.0f} s would be {1e3 * CLAIMED_S / CLAIMED:,.0f} ms an entry. A user with one session waits "
        f"{_readable(alone)} alone, and {_readable(among)} among {max(OTHERS):,} sessions of others; it may hold among "
        "very many, which was not measured."
    )


def _readable(seconds: float) -> str:
    return f"{1e6 * seconds:,.0f} µs" if seconds < 1e-3 else f"{1e3 * seconds:,.1f} ms"


def verdict(its: Timed) -> Outcome:
    """It holds where every way takes half of that or more, and depends where one does."""
    took = [its.median(engine) for engine in ENGINES]
    if min(took) > CLAIMED_S / 2:
        return "holds"
    return "depends" if max(took) > CLAIMED_S / 2 else "fails"
