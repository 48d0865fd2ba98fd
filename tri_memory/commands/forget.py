"""`tri-memory forget`: one user, in every store that the environment names."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from tri_memory.commands.registry import pseudonyms_from_env, registry_from_env
from tri_memory.contracts import require_text
from tri_memory.engines.closing import Closing
from tri_memory.factory import (
    ENGINES,
    episodic_store_from_env,
    preference_store_from_env,
    session_store_from_env,
    user_memory_store_from_env,
)
from tri_memory.privacy.forget import Stores, forget_user
from tri_memory.privacy.forgettable import Forgettable
from tri_memory.privacy.pseudonyms import Pseudonyms
from tri_memory.privacy.receipt import Receipt

if TYPE_CHECKING:
    from tri_memory.privacy.postgres_tombstones import PostgresTombstones


async def forgotten(user_id: str) -> Receipt:
    """Forget this user there; what was done. A store whose server doesn't answer is a line of the receipt.

    ValueError where all stores are in memory, which a new process has none of, and for settings that are wrong.
    """
    require_text("user_id", user_id)
    pseudonyms = pseudonyms_from_env()
    async with AsyncExitStack() as stack:
        stores = await _stores(stack)
        tombstones = await _answering(stack)
        return await forget_user(user_id, stores=stores, tombstones=tombstones, pseudonyms=pseudonyms)


async def _answering(stack: AsyncExitStack) -> PostgresTombstones | None:
    """None also where the registry's server is away: then what can be erased is erased, and the stores there fail."""
    registry = registry_from_env()
    if registry is not None:
        await stack.enter_async_context(registry)
        try:
            await registry.open()
        except ConnectionError:
            return None
    return registry


async def _stores(stack: AsyncExitStack) -> Stores:
    for variable, engines in ENGINES.items():
        if (value := os.environ.get(variable, "")).strip().lower() not in ("", *engines):
            raise ValueError(
                f"{variable}={value!r} is not one of {', '.join(engines)}, so that store can't be opened, and nothing "
                "was forgotten: correct it, or unset it where there is none"
            )
    if not names_a_store():
        raise ValueError(
            "every store is in memory, where nothing outlives its process, so there is nothing to forget: set "
            "SESSION_STORE=redis and REDIS_URL, or PREFERENCE_STORE=pg, EPISODIC_STORE=pgvector, USER_MEMORY_STORE=pg "
            "and DATABASE_URL"
        )
    layers = {"SESSION_STORE": _sessions, "PREFERENCE_STORE": _preferences, "EPISODIC_STORE": _episodes}
    named = [layer for variable, layer in layers.items() if _is_named(variable)]
    if os.environ.get("DATABASE_URL", "").strip():  # records may be there without being named
        named.append(_user_memory)
    elif _is_named("USER_MEMORY_STORE"):
        user_memory_store_from_env()  # which says that the URL is missing
    found: dict[str, Any] = {}
    failed: list[Forgettable] = []
    for layer in named:
        try:
            found |= await layer(stack)
        except (OSError, RuntimeError, ImportError) as error:  # the others are forgotten all the same
            failed.append(_Unreachable(layer.__name__.removeprefix("_"), error))
    return Stores(**found, others=failed)


def names_a_store() -> bool:
    """Whether the environment names one that outlives the process."""
    return any(map(_is_named, ENGINES))


def _is_named(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in ("", "memory")


async def _sessions(stack: AsyncExitStack) -> dict[str, Any]:
    return {"sessions": await _entered(stack, session_store_from_env())}


async def _preferences(stack: AsyncExitStack) -> dict[str, Any]:
    return {"preferences": await _entered(stack, preference_store_from_env())}


async def _entered(stack: AsyncExitStack, store: Any) -> Any:
    return await stack.enter_async_context(store) if isinstance(store, Closing) else store


async def _episodes(stack: AsyncExitStack) -> dict[str, Any]:
    """Whatever the size of the vectors that are there; where nothing was ever stored, no table is made."""
    episodic_store_from_env()  # which says what is missing
    from tri_memory.episodic.pgvector import PgVectorEpisodicStore
    from tri_memory.episodic.pgvector_archive import dimensions_of

    url = os.environ["DATABASE_URL"].strip()
    store = await PgVectorEpisodicStore.existing(url)
    if store is None:
        return {}
    return {"episodes": await stack.enter_async_context(store), "dimensions": await dimensions_of(url, "episodes")}


async def _user_memory(stack: AsyncExitStack) -> dict[str, Any]:
    """The long-term record, with its cache and the short context where there is a Redis; where there is no such table,
    none is made."""
    from tri_memory.engines.postgres_connection import connect
    from tri_memory.engines.postgres_pool import columns_of
    from tri_memory.entity.postgres import PostgresUserMemoryStore

    url, redis_url = (os.environ.get(name, "").strip() for name in ("DATABASE_URL", "REDIS_URL"))
    async with await connect(url) as connection:
        if not await columns_of(connection, "user_memory"):
            return {}
    truth = await stack.enter_async_context(PostgresUserMemoryStore(url))
    if not redis_url:
        return {"user_memory": truth}
    from tri_memory.entity.cache import CachedUserMemoryStore
    from tri_memory.entity.short_context import RedisShortContext

    found: dict[str, Any] = {
        "user_memory": await stack.enter_async_context(CachedUserMemoryStore.from_url(truth, redis_url)),
        "short_context": await stack.enter_async_context(RedisShortContext.from_url(redis_url)),
    }
    if names := pseudonyms_from_env():
        found["cache"] = _UnderKeyedNames(stack, truth, redis_url, names)
    return found


class _UnderKeyedNames:
    """What a program keeps in Redis that gave its cache and its short context `Pseudonyms.of_user` for `name_of`."""

    def __init__(self, stack: AsyncExitStack, truth: Any, url: str, pseudonyms: Pseudonyms) -> None:
        self._stack, self._truth, self._url, self._pseudonyms = stack, truth, url, pseudonyms

    async def forget(self, user_id: str) -> int:
        from tri_memory.entity.cache import CachedUserMemoryStore
        from tri_memory.entity.short_context import RedisShortContext

        gone = 0
        for name in self._pseudonyms.candidates_of_user(user_id):
            named = {"name_of": lambda _, name=name: name}
            cache = CachedUserMemoryStore.from_url(self._truth, self._url, **named)
            await (await self._stack.enter_async_context(cache)).deactivate(user_id)
            short = await self._stack.enter_async_context(RedisShortContext.from_url(self._url, **named))
            gone += await short.forget(user_id)
        return gone


class _Unreachable:
    """Stands in the receipt for a store that could not even be opened."""

    def __init__(self, name: str, error: Exception) -> None:
        self.name, self._error = name, error

    async def forget(self, user_id: str) -> int:
        raise self._error

    async def find(self, user_id: str, canary: str) -> None:
        raise self._error
