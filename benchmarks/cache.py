"""What a hit in the cache of users' records costs beside one GET of the same bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import uuid4

from redis.asyncio import Redis

from benchmarks.timing import Row, paired
from tri_memory import engines
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.memory import InMemoryUserMemoryStore

READS = 200
RECORDS = 5  # of one user and type


def rows() -> Iterator[Row]:
    with engines.redis() as server, asyncio.Runner() as runner:
        prefix = f"bench:{uuid4().hex}:"
        client = Redis.from_url(server.url)
        store = CachedUserMemoryStore(InMemoryUserMemoryStore(), client, prefix=prefix)
        key = runner.run(_warm(store, client, prefix))

        async def ours() -> None:
            for _ in range(READS):
                await store.find("ann", memory_type="case")

        async def bare() -> None:
            for _ in range(READS):
                await client.get(key)

        yield paired(
            f"read {RECORDS} records from the cache, Redis ({server.how})",
            lambda: runner.run(ours()),
            "bare GET of the entry",
            lambda: runner.run(bare()),
            units=READS,
            rounds=25,
            goal=1.3,
        )
        if store.stats.misses > 1 or store.stats.failures:
            raise RuntimeError(f"these were not all hits: {store.stats}")
        runner.run(store.forget("ann"))
        runner.run(client.aclose())


async def _warm(store: CachedUserMemoryStore, client: Redis, prefix: str) -> str:
    for number in range(RECORDS):
        await store.put("ann", "case", f"BX-220{number}", {"status": "open", "device": "router", "note": "late " * 5})
    await store.find("ann", memory_type="case")
    return f"{prefix}{{ann}}:case:{await store.version('ann')}"
