from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest

from tri_memory import InMemorySessionStore, RedisSessionStore, SessionStore, blocking

MakeStore = Callable[..., SessionStore]


@pytest.fixture(params=["memory", "valkey"])
async def make_store(request: pytest.FixtureRequest) -> AsyncIterator[MakeStore]:
    """Makes stores in memory, or under a prefix of their own on a real server."""
    if request.param == "memory":
        yield InMemorySessionStore
        return
    url, prefix = request.getfixturevalue("embedded_valkey"), f"{uuid4().hex}:"
    made: list[RedisSessionStore] = []

    def make(**options: Any) -> SessionStore:
        made.append(RedisSessionStore.from_url(url, prefix=prefix, **options))
        return made[-1]

    yield make
    for store in made:
        await store.close()
        await asyncio.to_thread(blocking(store).close)  # what it opened on the background loop
