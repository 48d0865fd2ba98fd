"""The engines that the suite runs over. A new engine is one fixture here, and its name in the list of its layer.

A fixture gives a function that makes an empty store with the given options; what one test writes no other sees.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

import pytest

from tests.conftest import needs
from tri_memory import (
    EpisodicStore,
    InMemoryEpisodicStore,
    InMemoryPreferenceStore,
    InMemorySessionStore,
    PreferenceStore,
    SessionStore,
)
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.records import UserMemoryStore

SESSION_ENGINES = [
    "memory",
    "fakeredis",
    "valkey",
    "valkey_decoded",
    "container_redis",
    "container_redis_decoded",
    "cluster",
]
PREFERENCE_ENGINES = ["memory", "embedded_postgres", "container_postgres"]
EPISODIC_ENGINES = ["memory", "embedded_postgres", "container_postgres"]
USER_MEMORY_ENGINES = ["memory", "embedded_postgres", "container_postgres"]

MakeSessions = Callable[..., SessionStore]
MakeUserMemories = Callable[..., UserMemoryStore]


@pytest.fixture(params=SESSION_ENGINES)
def sessions(request: pytest.FixtureRequest) -> MakeSessions:
    make: MakeSessions = request.getfixturevalue(f"{request.param}_sessions")
    return make


@pytest.fixture(params=PREFERENCE_ENGINES)
def preferences(request: pytest.FixtureRequest) -> PreferenceStore:
    store: PreferenceStore = request.getfixturevalue(f"{request.param}_preferences")
    return store


@pytest.fixture(params=EPISODIC_ENGINES)
def episodes(request: pytest.FixtureRequest) -> Callable[[int], EpisodicStore]:
    make: Callable[[int], EpisodicStore] = request.getfixturevalue(f"{request.param}_episodes")
    return make


@pytest.fixture(params=USER_MEMORY_ENGINES)
def user_memories(request: pytest.FixtureRequest) -> MakeUserMemories:
    make: MakeUserMemories = request.getfixturevalue(f"{request.param}_user_memories")
    return make


@pytest.fixture
def memory_sessions() -> MakeSessions:
    return InMemorySessionStore


@pytest.fixture
async def fakeredis_sessions() -> AsyncIterator[MakeSessions]:
    fakeredis = needs("fakeredis", "pip install 'fakeredis[lua]'")
    needs("lupa", "pip install 'fakeredis[lua]'")
    async with redis_sessions(fakeredis.FakeAsyncRedis()) as make:
        yield make


@pytest.fixture
async def valkey_sessions(embedded_valkey: str) -> AsyncIterator[MakeSessions]:
    from redis.asyncio import Redis

    async with redis_sessions(Redis.from_url(embedded_valkey)) as make:
        yield make


@pytest.fixture
async def valkey_decoded_sessions(embedded_valkey: str) -> AsyncIterator[MakeSessions]:
    from redis.asyncio import Redis

    async with redis_sessions(Redis.from_url(embedded_valkey, decode_responses=True)) as make:
        yield make


@pytest.fixture
async def container_redis_sessions(container_redis: str) -> AsyncIterator[MakeSessions]:
    from redis.asyncio import Redis

    async with redis_sessions(Redis.from_url(container_redis)) as make:
        yield make


@pytest.fixture
async def container_redis_decoded_sessions(container_redis: str) -> AsyncIterator[MakeSessions]:
    from redis.asyncio import Redis

    async with redis_sessions(Redis.from_url(container_redis, decode_responses=True)) as make:
        yield make


@pytest.fixture
async def cluster_sessions(redis_cluster: str) -> AsyncIterator[MakeSessions]:
    from redis.asyncio import RedisCluster

    async with redis_sessions(RedisCluster.from_url(redis_cluster)) as make:
        yield make


@asynccontextmanager
async def redis_sessions(client: Any) -> AsyncIterator[MakeSessions]:
    """Stores on one client, under a prefix of their own."""
    from tri_memory import RedisSessionStore

    prefix = f"{uuid4().hex}:"
    yield lambda **options: RedisSessionStore(client, **{"prefix": prefix, **options})
    await client.aclose()


@pytest.fixture
def memory_preferences() -> PreferenceStore:
    return InMemoryPreferenceStore()


@pytest.fixture
async def embedded_postgres_preferences(embedded_postgres: str) -> AsyncIterator[PreferenceStore]:
    async with postgres_preferences(embedded_postgres) as store:
        yield store


@pytest.fixture
async def container_postgres_preferences(container_postgres: str) -> AsyncIterator[PreferenceStore]:
    async with postgres_preferences(container_postgres) as store:
        yield store


@asynccontextmanager
async def postgres_preferences(url: str) -> AsyncIterator[PreferenceStore]:
    from tri_memory import PostgresPreferenceStore

    with own_table(url) as table:
        async with await PostgresPreferenceStore.connect(url, table=table) as store:
            yield store


@pytest.fixture
def memory_episodes() -> Callable[[int], EpisodicStore]:
    return lambda dimensions: InMemoryEpisodicStore()


@pytest.fixture
async def embedded_postgres_episodes(embedded_postgres: str) -> AsyncIterator[Callable[[int], EpisodicStore]]:
    async with postgres_episodes(embedded_postgres) as make:
        yield make


@pytest.fixture
async def container_postgres_episodes(container_postgres: str) -> AsyncIterator[Callable[[int], EpisodicStore]]:
    async with postgres_episodes(container_postgres) as make:
        yield make


@asynccontextmanager
async def postgres_episodes(url: str) -> AsyncIterator[Callable[[int], EpisodicStore]]:
    from tri_memory import PgVectorEpisodicStore

    made: list[PgVectorEpisodicStore] = []

    def make(dimensions: int) -> EpisodicStore:
        made.append(PgVectorEpisodicStore(url, dimensions, table=table))
        return made[-1]

    with own_table(url) as table:
        yield make
        for store in made:
            await store.close()


@pytest.fixture
def memory_user_memories() -> MakeUserMemories:
    return InMemoryUserMemoryStore


@pytest.fixture
async def embedded_postgres_user_memories(embedded_postgres: str) -> AsyncIterator[MakeUserMemories]:
    async with postgres_user_memories(embedded_postgres) as make:
        yield make


@pytest.fixture
async def container_postgres_user_memories(container_postgres: str) -> AsyncIterator[MakeUserMemories]:
    async with postgres_user_memories(container_postgres) as make:
        yield make


@asynccontextmanager
async def postgres_user_memories(url: str) -> AsyncIterator[MakeUserMemories]:
    from tri_memory.entity.postgres import PostgresUserMemoryStore

    made: list[PostgresUserMemoryStore] = []

    def make(**options: Any) -> UserMemoryStore:
        made.append(PostgresUserMemoryStore(url, table=table, **options))
        return made[-1]

    with own_table(url) as table:
        yield make
        for store in made:
            await store.close()


@contextmanager
def own_table(url: str) -> Iterator[str]:
    """A table name that nobody else has; the table, and the one beside it, go when the test ends."""
    import psycopg

    table = f"t_{uuid4().hex}"
    yield table
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {table}, {table}_users, {table}_archive")
