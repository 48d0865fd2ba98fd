"""`tri-memory purge`: delete for good what was forgotten seven days ago, of all users."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from tri_memory.commands.registry import registry_from_env
from tri_memory.privacy.forget import HIDDEN_FOR, Stores, purge

if TYPE_CHECKING:
    from tri_memory.privacy.postgres_tombstones import PostgresTombstones

TABLES = (
    *("preferences", "episodes", "episodes_archive", "user_memory", "user_memory_users"),
    *("tombstones", "tombstones_writes"),
)


async def purged(scrub: bool) -> str:
    """Do it in the database that DATABASE_URL names; what was done. ValueError where it names none."""
    from psycopg import Error

    from tri_memory.engines.postgres_connection import connect, first_line
    from tri_memory.engines.postgres_pool import columns_of
    from tri_memory.entity.postgres import PostgresUserMemoryStore

    url = os.environ.get("DATABASE_URL", "").strip()
    if not url:
        raise ValueError(
            "only the records in Postgres are hidden first and deleted later, and DATABASE_URL is not set, so there is "
            "nothing to purge: set it, such as to postgresql://user:password@127.0.0.1/postgres"
        )
    try:
        async with AsyncExitStack() as stack:
            async with await connect(url) as connection:
                there = {table for table in TABLES if await columns_of(connection, table)}
            found: dict[str, Any] = {}
            if "user_memory" in there:
                found["user_memory"] = await stack.enter_async_context(PostgresUserMemoryStore(url))
            gone = await purge(stores=Stores(**found), tombstones=await _registry(stack, there))
        return "\n".join([_summary(sum(gone.values())), *(await _scrubbed(url) if scrub else [])])
    except Error as error:  # its further lines may quote a row
        raise RuntimeError(first_line(error)) from error


async def _registry(stack: AsyncExitStack, there: set[str]) -> PostgresTombstones | None:
    registry = registry_from_env() if "tombstones" in there else None
    return None if registry is None else await stack.enter_async_context(registry)


def _summary(count: int) -> str:
    what = "1 entry" if count == 1 else f"{count:,} entries"
    return f"{what} deleted for good that had been forgotten for {HIDDEN_FOR.days} days; run again and nothing changes"


async def _scrubbed(url: str) -> list[str]:
    from tri_memory.privacy.scrub import scrub_postgres, scrub_redis

    done = await scrub_postgres(url, TABLES)
    lines = [f"scrubbed: PostgreSQL, {done['tables']} tables and {done['wal_files']} files of the write-ahead log"]
    if redis_url := os.environ.get("REDIS_URL", "").strip():
        files = await scrub_redis(redis_url)
        lines.append(f"scrubbed: Redis, {files['aof']} append-only file and {files['rdb']} snapshot")
    return lines
