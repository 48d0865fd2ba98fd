"""A search that trusts no store: is a text anywhere in these servers, or in the files that they write?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tri_memory.contracts import require_text
from tri_memory.engines.postgres_connection import connect
from tri_memory.engines.redis_client import ClientPerLoop, Connected


async def hunt_postgres(url: str, canaries: Iterable[str]) -> dict[str, int]:
    """{table: rows} of this database in which one of the texts stands, in whatever column; {} where none does."""
    texts = [require_text("a canary", each) for each in canaries]
    found: dict[str, int] = {}
    async with await connect(url) as connection:
        rows = await connection.execute(
            "SELECT quote_ident(nspname) || '.' || quote_ident(relname) FROM pg_class "
            "JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE relkind IN ('r', 'm') "
            "AND nspname NOT IN ('pg_catalog', 'information_schema') AND nspname NOT LIKE 'pg\\_toast%'"
        )
        for (table,) in await rows.fetchall():
            counted = await connection.execute(
                f"SELECT count(*) FROM {table} AS whole WHERE EXISTS "
                "(SELECT FROM unnest(%s::text[]) AS text WHERE position(text IN whole::text) > 0)",
                [texts],
            )
            row = await counted.fetchone()
            if row is not None and row[0]:
                found[table] = row[0]
    return found


async def hunt_redis(url: str, canaries: Iterable[str], *, match: str = "*") -> dict[str, int]:
    """{"keys": …, "slowlog": …}: in how many keys, their names included, and in how many slow commands one of the texts
    stands; {} where in none. `match` is a glob for the names of the keys that are looked into."""
    texts = [require_text("a canary", each).encode() for each in canaries]
    found = {"keys": 0, "slowlog": 0}
    clients = ClientPerLoop(url)
    try:
        async with Connected(clients) as client:
            async for key in client.scan_iter(match=match, count=1_000):
                whole = [key, *await _values(client, key)]
                found["keys"] += any(text in each for text in texts for each in whole)
            for slow in await client.slowlog_get(-1):
                found["slowlog"] += any(text in slow["command"] for text in texts)
    finally:
        await clients.close()
    return {place: count for place, count in found.items() if count}


async def _values(client: Any, key: bytes) -> list[bytes]:
    kind = await client.type(key)
    if kind == b"string":
        return [await client.get(key) or b""]
    if kind == b"list":
        return list(await client.lrange(key, 0, -1))
    if kind == b"set":
        return list(await client.smembers(key))
    if kind == b"zset":
        return list(await client.zrange(key, 0, -1))
    if kind == b"hash":
        return [part for pair in (await client.hgetall(key)).items() for part in pair]
    return [await client.dump(key) or b""]


def hunt_files(folder: str | Path, canaries: Iterable[str | bytes]) -> dict[str, int]:
    """{path below `folder`: how often} one of the texts, in UTF-8, or of the byte strings, stands in a file.

    A value that a server has compressed hides a text from this search: plant one that can't be compressed.
    """
    texts = [each if isinstance(each, bytes) else require_text("a canary", each).encode() for each in canaries]
    found: dict[str, int] = {}
    for path in sorted(Path(folder).rglob("*")):
        try:
            content = path.read_bytes() if path.is_file() else b""
        except FileNotFoundError:  # it went while we looked
            continue
        count = sum(content.count(text) for text in texts)
        if count:
            found[str(path.relative_to(folder))] = count
    return found
