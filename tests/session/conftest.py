"""Redis stores under a prefix of their own, on each kind of server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.conftest import needs
from tri_memory import ChatTurn, RedisSessionStore

TTL_S = 3_600


def user(text: str) -> ChatTurn:
    return ChatTurn("user", text)


async def fill(store: RedisSessionStore, count: int, session_id: str = "s", start: int = 0) -> None:
    for i in range(start, start + count):
        await store.append(session_id, user(f"turn {i}"))


@pytest.fixture
def prefix() -> str:
    return f"{uuid4().hex}:"


@pytest.fixture(params=["embedded_valkey", "container_redis"])
def server(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture(params=["embedded_valkey", "container_redis", "redis_cluster", "fakeredis"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    if request.param == "fakeredis":
        made = needs("fakeredis", "pip install 'fakeredis[lua]'").FakeAsyncRedis(decode_responses=True)
    else:
        from redis.asyncio import Redis, RedisCluster

        kind = RedisCluster if request.param == "redis_cluster" else Redis
        made = kind.from_url(request.getfixturevalue(request.param), decode_responses=True)
    async with made as client:
        yield client


@pytest.fixture
def make(client: Any, prefix: str) -> Callable[..., RedisSessionStore]:
    return lambda **options: RedisSessionStore(client, **{"prefix": prefix, "ttl_s": TTL_S, **options})
