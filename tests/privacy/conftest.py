"""All stores of a user on three sets of engines: in memory, on the embedded servers, and on containers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from tests.conformance.conftest import own_table
from tri_memory import (
    InMemoryEpisodicStore,
    InMemoryPreferenceStore,
    InMemorySessionStore,
    PgVectorEpisodicStore,
    PostgresPreferenceStore,
    RedisSessionStore,
)
from tri_memory.embedding.hashing import HashingEmbedder
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.entity.short_context import InMemoryShortContext, RedisShortContext

EMBEDDER = HashingEmbedder()
ENGINES = ["memory", "embedded", "container"]


@dataclass
class Layers:
    sessions: Any
    preferences: Any
    episodes: Any
    user_memory: Any
    short_context: Any


@pytest.fixture(params=ENGINES)
async def layers(request: pytest.FixtureRequest) -> AsyncIterator[Layers]:
    if request.param == "memory":
        yield Layers(
            InMemorySessionStore(),
            InMemoryPreferenceStore(),
            InMemoryEpisodicStore(),
            InMemoryUserMemoryStore(),
            InMemoryShortContext(),
        )
        return
    names = {
        "embedded": ("embedded_valkey", "embedded_postgres"),
        "container": ("container_redis", "container_postgres"),
    }
    redis_url, postgres_url = (request.getfixturevalue(name) for name in names[request.param])
    async with AsyncExitStack() as stack:
        yield await real_layers(stack, redis_url, postgres_url)


async def real_layers(stack: AsyncExitStack, redis_url: str, postgres_url: str) -> Layers:
    tables = [stack.enter_context(own_table(postgres_url)) for _ in range(3)]
    prefix = f"{uuid4().hex}:"
    truth = await stack.enter_async_context(PostgresUserMemoryStore(postgres_url, table=tables[2]))
    return Layers(
        await stack.enter_async_context(RedisSessionStore.from_url(redis_url, prefix=prefix)),
        await stack.enter_async_context(PostgresPreferenceStore(postgres_url, table=tables[0])),
        await stack.enter_async_context(PgVectorEpisodicStore(postgres_url, EMBEDDER.dimensions, table=tables[1])),
        await stack.enter_async_context(CachedUserMemoryStore.from_url(truth, redis_url, prefix=prefix)),
        await stack.enter_async_context(RedisShortContext.from_url(redis_url, prefix=prefix)),
    )
