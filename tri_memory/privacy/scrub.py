"""What a deletion leaves in a server's files, and how to be rid of it.

PostgreSQL only marks a deleted row. Its bytes stay in the table's pages, in those of its indexes (an HNSW index keeps
the vector), in the statistics that ANALYZE took, and in the write-ahead log, whose old files are renamed and used
again, content and all, until something overwrites them. Redis and Valkey append a deletion to the file that holds what
is deleted, keep slow commands with their arguments in a log, and may have an old snapshot.

What can't be reached from here: backups, replicas and archived WAL, snapshots of a file system, blocks of a disk that
were freed and not yet overwritten, swap, what a server writes into a log of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from tri_memory.engines.postgres_connection import Connection, connect
from tri_memory.engines.postgres_pool import columns_of, identifier
from tri_memory.engines.redis_client import ClientPerLoop, Connected

MOST_SWITCHES = 1_000  # files of the write-ahead log, 16 GB at 16 MB each
LIMIT_S = 300.0

_AHEAD = (  # files with an old content that wait to be written to again
    "SELECT count(*) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$' AND name > pg_walfile_name(pg_current_wal_lsn())"
)
_SET_BEFORE = (  # by an administrator's ALTER SYSTEM
    "SELECT setting FROM pg_file_settings WHERE name = 'wal_recycle' AND sourcefile LIKE '%postgresql.auto.conf'"
)


async def scrub_postgres(url: str, tables: Iterable[str]) -> dict[str, int]:
    """Rewrite these tables with their indexes, clear their statistics, and overwrite or remove the log that came
    before; {"tables": …, "wal_files": …} how many were rewritten and walked through.

    Needs a superuser (ValueError otherwise, naming what it could not do), holds an exclusive lock on each table while
    it is rewritten, and needs the room of a second copy of it. An open transaction of somebody else keeps deleted rows
    from going: then TimeoutError. Tables that aren't there are passed over.
    """
    names = [identifier(table) for table in tables]
    async with await connect(url) as connection:
        if not await _one(connection, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
            raise ValueError(
                "only a superuser may clear statistics and the write-ahead log; the user of this URL may not, so "
                "the server's files still hold what was deleted"
            )
        await _wait_for_older_transactions(connection)
        there = [name for name in names if await columns_of(connection, name)]
        for name in there:
            await connection.execute(f"DELETE FROM pg_statistic WHERE starelid = '{name}'::regclass")
            await connection.execute(f"VACUUM (FULL, ANALYZE) {name}")
        await connection.execute("VACUUM (FULL) pg_statistic")
        return {"tables": len(there), "wal_files": await _overwrite_wal(connection)}


async def _wait_for_older_transactions(connection: Connection) -> None:
    now = await _one(connection, "SELECT pg_current_xact_id()::text::bigint")
    ends = time.monotonic() + LIMIT_S
    while True:
        oldest = await _one(
            connection,
            "SELECT min(greatest(age(backend_xmin), age(backend_xid))) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database() "
            f"AND greatest(age(backend_xmin), age(backend_xid)) > age('{now}'::xid)",
        )
        if oldest is None:
            return
        if time.monotonic() >= ends:
            raise TimeoutError("a transaction that began before is still open, and keeps what was deleted; end it")
        await asyncio.sleep(0.1)


async def _overwrite_wal(connection: Connection) -> int:
    """Files that wait for reuse are walked through, which fills each with zeros; then the older ones are removed."""
    recycle = await _one(connection, "SHOW wal_recycle")
    set_before = await _one(connection, _SET_BEFORE)
    await connection.execute("ALTER SYSTEM SET wal_recycle = off")
    walked = 0
    try:
        await _reloaded(connection, "off")
        await _next_file(connection)
        await connection.execute("CHECKPOINT")
        while await _one(connection, _AHEAD) and walked < MOST_SWITCHES:
            await _next_file(connection)
            walked += 1
        await _next_file(connection)
        await connection.execute("CHECKPOINT")
        await _next_file(connection)
        await connection.execute("CHECKPOINT")
    finally:
        put_back = "RESET wal_recycle" if set_before is None else f"SET wal_recycle = '{set_before}'"
        await connection.execute(f"ALTER SYSTEM {put_back}")
        await _reloaded(connection, recycle)
    return walked


async def _next_file(connection: Connection) -> None:
    await connection.execute("SELECT pg_logical_emit_message(true, 'tri_memory', '')")  # an empty file isn't left
    await connection.execute("SELECT pg_switch_wal()")


async def _reloaded(connection: Connection, value: str) -> None:
    await connection.execute("SELECT pg_reload_conf()")
    for _ in range(100):
        if await _one(connection, "SHOW wal_recycle") == value:
            return
        await asyncio.sleep(0.05)


async def _one(connection: Connection, query: str) -> Any:
    row = await (await connection.execute(query)).fetchone()
    return None if row is None else row[0]


async def scrub_redis(url: str) -> dict[str, int]:
    """Have the append-only file and, where there is one, the snapshot written anew, and the slow log emptied;
    {"aof": 1 or 0, "rdb": 1 or 0}, what was rewritten.

    Needs rights to BGREWRITEAOF, BGSAVE, SLOWLOG and CONFIG GET; the client's error where it has none. TimeoutError
    where the server hasn't done it within 300 s.
    """
    clients = ClientPerLoop(url)
    try:
        async with Connected(clients) as client:
            await client.slowlog_reset()
            done = {"aof": 0, "rdb": 0}
            before = await client.info("persistence")
            if before["aof_enabled"]:
                await client.bgrewriteaof()
                await _idle(client, "aof_rewrite_in_progress", "aof_rewrite_scheduled")
                done["aof"] = _succeeded(await client.info("persistence"), "aof_last_bgrewrite_status")
            settings = await client.config_get("save")
            if settings.get("save") or before["rdb_saves"]:
                await client.bgsave()
                await _idle(client, "rdb_bgsave_in_progress")
                done["rdb"] = _succeeded(await client.info("persistence"), "rdb_last_bgsave_status")
            return done
    finally:
        await clients.close()


async def _idle(client: Any, *flags: str) -> None:
    ends = time.monotonic() + LIMIT_S
    while True:
        info = await client.info("persistence")
        if not any(info[flag] for flag in flags):
            return
        if time.monotonic() >= ends:
            raise TimeoutError("the server has not written its file anew within 300 s; look into its log")
        await asyncio.sleep(0.05)


def _succeeded(info: dict[str, Any], status: str) -> int:
    if info[status] != "ok":
        raise RuntimeError(f"the server could not write its file anew ({status} is {info[status]}); look into its log")
    return 1
