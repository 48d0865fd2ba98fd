"""An answer of chapter 06 held against each engine that this machine has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tri_memory.blocking_calls import run
from tri_memory.contracts import PreferenceStore
from tri_memory.lab import servers
from tri_memory.lab.exercises.kit import Wrong
from tri_memory.preference.memory import InMemoryPreferenceStore

LIMIT_S = 60  # for one answer on one engine


def everywhere(hold: Callable[[PreferenceStore], Awaitable[None]]) -> None:
    """Await `hold` with an empty store in memory, then with one of each server; Wrong names the server it failed on.

    Memory comes first, so that an empty stub starts no server.
    """
    run(_bounded(hold(InMemoryPreferenceStore())))
    stores = servers.every_preference_store()
    try:
        for engine, store in stores.items():
            if engine != "memory":
                _on(engine, store, hold)
    finally:
        for store in stores.values():
            if close := getattr(store, "close", None):
                run(close())


def _on(engine: str, store: PreferenceStore, hold: Callable[[PreferenceStore], Awaitable[None]]) -> None:
    try:
        run(_bounded(hold(store)))
    except Wrong as wrong:
        raise Wrong(f"Right in memory, not in PostgreSQL ({engine}). {wrong}") from None
    except Exception as error:
        raise Wrong(
            f"Right in memory; in PostgreSQL ({engine}) it raised {type(error).__name__}: {error}. "
            "Every engine has get, set, all and forget; use nothing else of it."
        ) from error


async def _bounded(work: Awaitable[None]) -> None:
    try:
        await asyncio.wait_for(work, LIMIT_S)
    except TimeoutError:
        raise Wrong(f"It was still waiting after {LIMIT_S} s.") from None


class Refusing:
    """A store whose network fails at the second `set`."""

    def __init__(self, store: PreferenceStore) -> None:
        self._store, self._writes = store, 0

    async def get(self, user_id: str, key: str) -> str | None:
        return await self._store.get(user_id, key)

    async def set(self, user_id: str, key: str, value: str) -> bool:
        self._writes += 1
        if self._writes == 2:
            raise ConnectionError("the network is gone")
        return await self._store.set(user_id, key, value)

    async def all(self, user_id: str) -> dict[str, str]:
        return await self._store.all(user_id)

    async def forget(self, user_id: str) -> int:
        return await self._store.forget(user_id)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a preference store has get, set, all and forget, and no {name!r}")
