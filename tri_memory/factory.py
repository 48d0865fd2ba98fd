"""Environment variables -> stores. Nothing set: everything in memory, and no client is imported.

    SESSION_STORE     memory | redis       (REDIS_URL)
    PREFERENCE_STORE  memory | pg          (DATABASE_URL)
    EPISODIC_STORE    memory | pgvector    (DATABASE_URL)
    USER_MEMORY_STORE memory | pg          (DATABASE_URL)

A value that the variable doesn't know is a warning that quotes it, and memory. A chosen engine whose URL is missing
(ValueError) or whose server doesn't answer within 10 s (ConnectionError naming it) is an error, never memory.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tri_memory.contracts import EpisodicStore, PreferenceStore, SessionStore
from tri_memory.entity.records import UserMemoryStore
from tri_memory.session.compression import CompressionPolicy, CountPolicy, TokenWatermark
from tri_memory.session.tokens import context_tokens
from tri_memory.summary import Summarizer

if TYPE_CHECKING:
    from tri_memory.engines.kind import Kind


ENGINES = {
    "SESSION_STORE": ("memory", "redis"),
    "PREFERENCE_STORE": ("memory", "pg"),
    "EPISODIC_STORE": ("memory", "pgvector"),
    "USER_MEMORY_STORE": ("memory", "pg"),
}


def session_store_from_env(
    env: Mapping[str, str] | None = None, *, summarizer: Summarizer | None = None
) -> SessionStore:
    """The session store that `SESSION_STORE` names, with the policy of `policy_from_env`."""
    policy = policy_from_env(env)
    if _choose("SESSION_STORE", env) == "redis":
        from tri_memory.engines.kind import REDIS
        from tri_memory.session.redis import RedisSessionStore

        url = _answering(REDIS, "SESSION_STORE=redis", "redis://127.0.0.1:6379/0", env)
        return RedisSessionStore.from_url(url, policy=policy, summarizer=summarizer)
    from tri_memory.session.memory import InMemorySessionStore

    return InMemorySessionStore(policy=policy, summarizer=summarizer)


def preference_store_from_env(env: Mapping[str, str] | None = None) -> PreferenceStore:
    """The preference store that `PREFERENCE_STORE` names; its table is created at the first call."""
    if _choose("PREFERENCE_STORE", env) == "pg":
        from tri_memory.engines.kind import POSTGRES
        from tri_memory.preference.postgres import PostgresPreferenceStore

        url = _answering(POSTGRES, "PREFERENCE_STORE=pg", "postgresql://user:password@127.0.0.1/postgres", env)
        return PostgresPreferenceStore(url)
    from tri_memory.preference.memory import InMemoryPreferenceStore

    return InMemoryPreferenceStore()


def episodic_store_from_env(env: Mapping[str, str] | None = None, *, dimensions: int = 512) -> EpisodicStore:
    """The episodic store that `EPISODIC_STORE` names; its table is created, for vectors of `dimensions` numbers, at the
    first call. In memory the first vector says how many."""
    if _choose("EPISODIC_STORE", env) == "pgvector":
        from tri_memory.engines.kind import POSTGRES
        from tri_memory.episodic.pgvector import PgVectorEpisodicStore

        url = _answering(POSTGRES, "EPISODIC_STORE=pgvector", "postgresql://user:password@127.0.0.1/postgres", env)
        return PgVectorEpisodicStore(url, dimensions)
    from tri_memory.episodic.memory import InMemoryEpisodicStore

    return InMemoryEpisodicStore()


def user_memory_store_from_env(env: Mapping[str, str] | None = None) -> UserMemoryStore:
    """The store of users' records that `USER_MEMORY_STORE` names; its tables are created at the first call."""
    if _choose("USER_MEMORY_STORE", env) == "pg":
        from tri_memory.engines.kind import POSTGRES
        from tri_memory.entity.postgres import PostgresUserMemoryStore

        url = _answering(POSTGRES, "USER_MEMORY_STORE=pg", "postgresql://user:password@127.0.0.1/postgres", env)
        return PostgresUserMemoryStore(url)
    from tri_memory.entity.memory import InMemoryUserMemoryStore

    return InMemoryUserMemoryStore()


def policy_from_env(env: Mapping[str, str] | None = None) -> CompressionPolicy:
    """A token watermark where the model's context window is known (`MODEL_CONTEXT_TOKENS`, `OPENAI_MODEL`), else the
    default count policy."""
    tokens = context_tokens(env=env)
    if tokens is None:
        return CountPolicy()
    return TokenWatermark(tokens)


def _choose(variable: str, env: Mapping[str, str] | None) -> str:
    value = (os.environ if env is None else env).get(variable) or ""
    name = value.strip().lower() or "memory"
    if name in ENGINES[variable]:
        return name
    warnings.warn(f"{variable}={value!r} is not one of {', '.join(ENGINES[variable])}; using memory", stacklevel=3)
    return "memory"


def _answering(kind: Kind, chosen: str, example: str, env: Mapping[str, str] | None) -> str:
    """The URL of a server that has just answered."""
    url = ((os.environ if env is None else env).get(kind.variable) or "").strip()
    if not url:
        raise ValueError(f"{chosen} needs {kind.variable}, such as {example}; compose.yaml starts such a server")
    from tri_memory.engines.patience import Limit
    from tri_memory.engines.url import GivenServer

    server = GivenServer(kind)
    server.url = url
    server.start(Limit(10))
    return url
