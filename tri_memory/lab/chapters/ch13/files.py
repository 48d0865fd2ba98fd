"""The raw files of two servers, searched for a text before and after it was forgotten, purged and scrubbed.

Only an embedded server's files lie on this machine, where they can be read: two are started here and stopped again.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pandas as pd
from redis.asyncio import Redis

from tri_memory import (
    ChatTurn,
    EpisodicRecord,
    PgVectorEpisodicStore,
    PostgresPreferenceStore,
    RedisSessionStore,
    engines,
)
from tri_memory.clock import system_clock
from tri_memory.embedding.hashing import HashingEmbedder
from tri_memory.engines.postgres_connection import connect
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.lab.chapters.ch13.house import later
from tri_memory.privacy.forget import Stores, forget_user, purge
from tri_memory.privacy.hunt import hunt_files
from tri_memory.privacy.scrub import scrub_postgres, scrub_redis

PLANTED, FORGOTTEN, PURGED, SCRUBBED = STEPS = ("said", "forgotten", "day 8, purged", "scrubbed")
TABLES = ("preferences", "episodes", "user_memory", "user_memory_users")
PAGES, WAL, AOF = FILES = ("Postgres: tables and indexes", "Postgres: write-ahead log", "Valkey: append-only file")
USER, ENTRIES = "zh-shop-01", 30


async def hunted() -> pd.DataFrame | None:
    """How often the text of thirty entries stands in each kind of file (a row) after each step (a column); None where
    this machine has no embedded servers."""
    postgres, valkey = engines.postgres("embedded"), engines.redis("embedded")
    try:
        for engine in (postgres, valkey):
            await asyncio.to_thread(engine.start)
    except RuntimeError:
        for engine in (postgres, valkey):
            engine.stop()
        return None
    try:
        return await _steps(postgres.url, valkey.url)
    finally:
        for engine in (postgres, valkey):
            await asyncio.to_thread(engine.stop)


async def _steps(postgres_url: str, redis_url: str) -> pd.DataFrame:
    folders = await _folders(postgres_url, redis_url)
    canary, embedder, found = f"花生{uuid4().hex}", HashingEmbedder(), {}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        stores = Stores(
            sessions=await enter(RedisSessionStore.from_url(redis_url)),
            preferences=await enter(PostgresPreferenceStore(postgres_url)),
            episodes=await enter(PgVectorEpisodicStore(postgres_url, embedder.dimensions)),
            dimensions=embedder.dimensions,
            user_memory=await enter(PostgresUserMemoryStore(postgres_url)),
        )
        await _said(stores, canary, embedder)
        found[PLANTED] = await _hunt(folders, postgres_url, canary)
        await forget_user(USER, stores=stores, canaries=[canary])
        found[FORGOTTEN] = await _hunt(folders, postgres_url, canary)
        await purge(stores=stores, clock=later(8))
        found[PURGED] = await _hunt(folders, postgres_url, canary)
        await scrub_redis(redis_url)
        await scrub_postgres(postgres_url, TABLES)
        found[SCRUBBED] = await _hunt(folders, postgres_url, canary)
    return pd.DataFrame(found, index=list(FILES))


async def _said(stores: Stores, canary: str, embedder: HashingEmbedder) -> None:
    for number in range(ENTRIES):
        text, session = f"{canary} {number}", f"{USER}/s{number}"
        vector = embedder.encode([text])[0]
        await stores.sessions.append(session, ChatTurn("user", text))  # type: ignore[union-attr]
        await stores.preferences.set(USER, f"key {number}", text)  # type: ignore[union-attr]
        await stores.episodes.remember(  # type: ignore[union-attr]
            EpisodicRecord(USER, session, text, vector, system_clock())
        )
        await stores.user_memory.put(USER, "case", f"case {number}", {"said": text})  # type: ignore[union-attr]


async def _folders(postgres_url: str, redis_url: str) -> tuple[Path, Path]:
    """Where the servers write, as they say themselves."""
    async with await connect(postgres_url) as connection:
        row = await (await connection.execute("SHOW data_directory")).fetchone()
    async with Redis.from_url(redis_url) as client:
        place = str((await client.config_get("dir"))["dir"])
    assert row is not None
    return Path(str(row[0])), Path(place)


async def _hunt(folders: tuple[Path, Path], postgres_url: str, canary: str) -> list[int]:
    """After a checkpoint, so that what Postgres holds in memory is in its files. A file that Valkey has replaced is
    unlinked by a thread of its own, which is given a moment."""
    async with await connect(postgres_url) as connection:
        await connection.execute("CHECKPOINT")
    await asyncio.sleep(0.3)
    pages, wal = 0, 0
    for path, count in hunt_files(folders[0], [canary]).items():
        if "pg_wal" in path:
            wal += count
        else:
            pages += count
    return [pages, wal, sum(hunt_files(folders[1], [canary]).values())]
