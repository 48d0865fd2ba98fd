"""Environment variables -> stores. Nothing set: everything in memory, and no client is imported.

    SESSION_STORE     memory | redis       (REDIS_URL)
    PREFERENCE_STORE  memory | pg          (DATABASE_URL)
    EPISODIC_STORE    memory | pgvector    (DATABASE_URL)

A value that the variable doesn't know is a warning that quotes it, and memory. One that this table has and this
version lacks is an error, never memory.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping

from tri_memory.contracts import EpisodicStore, PreferenceStore, SessionStore
from tri_memory.session.compression import CompressionPolicy, CountPolicy, TokenWatermark
from tri_memory.session.tokens import context_tokens
from tri_memory.summary import Summarizer

_PLANNED = {"SESSION_STORE": "redis", "PREFERENCE_STORE": "pg", "EPISODIC_STORE": "pgvector"}


def session_store_from_env(
    env: Mapping[str, str] | None = None, *, summarizer: Summarizer | None = None
) -> SessionStore:
    """The session store that `SESSION_STORE` names, with the policy of `policy_from_env`."""
    _choose("SESSION_STORE", ("memory",), env)
    from tri_memory.session.memory import InMemorySessionStore

    return InMemorySessionStore(policy=policy_from_env(env), summarizer=summarizer)


def preference_store_from_env(env: Mapping[str, str] | None = None) -> PreferenceStore:
    """The preference store that `PREFERENCE_STORE` names."""
    _choose("PREFERENCE_STORE", ("memory",), env)
    from tri_memory.preference.memory import InMemoryPreferenceStore

    return InMemoryPreferenceStore()


def episodic_store_from_env(env: Mapping[str, str] | None = None) -> EpisodicStore:
    """The episodic store that `EPISODIC_STORE` names."""
    _choose("EPISODIC_STORE", ("memory",), env)
    from tri_memory.episodic.memory import InMemoryEpisodicStore

    return InMemoryEpisodicStore()


def policy_from_env(env: Mapping[str, str] | None = None) -> CompressionPolicy:
    """A token watermark where the model's context window is known (`MODEL_CONTEXT_TOKENS`, `OPENAI_MODEL`), else the
    default count policy."""
    tokens = context_tokens(env=env)
    if tokens is None:
        return CountPolicy()
    return TokenWatermark(tokens)


def _choose(variable: str, engines: tuple[str, ...], env: Mapping[str, str] | None) -> str:
    value = (os.environ if env is None else env).get(variable) or ""
    name = value.strip().lower() or "memory"
    if name in engines:
        return name
    if name == _PLANNED[variable]:
        raise NotImplementedError(f"{variable}={value!r}: this version has no such engine; unset it, or set memory")
    warnings.warn(f"{variable}={value!r} is not one of {', '.join(engines)}; using memory", stacklevel=3)
    return "memory"
