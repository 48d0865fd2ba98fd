"""The servers of a kernel: one Redis and one PostgreSQL, shared by lesson, panel and checkers, gone when it ends.

`every_session_store` and its kin are for checkers: the same layer on each engine that this machine has, empty, so that
an answer can be held against all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from uuid import uuid4

from tri_memory import engines
from tri_memory.contracts import EpisodicStore, PreferenceStore, SessionStore
from tri_memory.engines import Engine
from tri_memory.entity.records import UserMemoryStore


def redis() -> Engine:
    """This kernel's Redis, started at the first call. RuntimeError, ConnectionError, TimeoutError as `Engine.start`."""
    return _started(engines.redis, None)


def postgres() -> Engine:
    """This kernel's PostgreSQL with pgvector, started at the first call."""
    return _started(engines.postgres, None)


def every_session_store(**options: Any) -> dict[str, SessionStore]:
    """By engine ("memory", "container", "embedded"), an empty store with these options."""
    from tri_memory import InMemorySessionStore, RedisSessionStore

    prefix = f"lesson:{uuid4().hex}:"
    stores: dict[str, SessionStore] = {"memory": InMemorySessionStore(**options)}
    for how, engine in _every("Redis", engines.redis).items():
        stores[how] = RedisSessionStore.from_url(engine.url, prefix=prefix, **options)
    return stores


def every_preference_store() -> dict[str, PreferenceStore]:
    """By engine, an empty preference store."""
    from tri_memory import InMemoryPreferenceStore, PostgresPreferenceStore

    table = f"lesson_{uuid4().hex}"
    stores: dict[str, PreferenceStore] = {"memory": InMemoryPreferenceStore()}
    for how, engine in _every("PostgreSQL", engines.postgres).items():
        stores[how] = PostgresPreferenceStore(engine.url, table=table)
    return stores


def every_episodic_store(dimensions: int) -> dict[str, EpisodicStore]:
    """By engine, an empty episodic store for vectors of so many numbers."""
    from tri_memory import InMemoryEpisodicStore, PgVectorEpisodicStore

    table = f"lesson_{uuid4().hex}"
    stores: dict[str, EpisodicStore] = {"memory": InMemoryEpisodicStore()}
    for how, engine in _every("PostgreSQL", engines.postgres).items():
        stores[how] = PgVectorEpisodicStore(engine.url, dimensions, table=table)
    return stores


def every_user_memory_store(**options: Any) -> dict[str, UserMemoryStore]:
    """By engine, an empty store of users' records with these options."""
    from tri_memory.entity.memory import InMemoryUserMemoryStore
    from tri_memory.entity.postgres import PostgresUserMemoryStore

    table = f"lesson_{uuid4().hex}"
    stores: dict[str, UserMemoryStore] = {"memory": InMemoryUserMemoryStore(**options)}
    for how, engine in _every("PostgreSQL", engines.postgres).items():
        stores[how] = PostgresUserMemoryStore(engine.url, table=table, **options)
    return stores


def every_redis() -> dict[str, Engine]:
    """By way ("container", "embedded"), a Redis that runs."""
    return _every("Redis", engines.redis)


def _every(kind: str, make: Callable[..., Engine]) -> dict[str, Engine]:
    """Those that this machine has. A server behind a URL is somebody's own and is left alone."""
    ways = [row.way for row in engines.describe() if row.kind == kind and row.available and row.way != "url"]
    lesson = _started(make, None)
    return {way: lesson if way == lesson.how else _started(make, way) for way in ways}


@cache
def _started(make: Callable[..., Engine], prefer: str | None) -> Engine:
    engine = make(prefer)
    engine.start()
    return engine
