"""Stores whose writes ask the registry of the forgotten first: `guarded(store, tombstones)` has the store's contract.

What the contract does not know goes through as it is. Reads note when their task began to work on the user; writes are
announced, refused with Forgotten where they began before the user was forgotten, and undone where they ended too late.
Whoever shares the data must share the registry, and write through such a store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, TypeVar, cast
from urllib.parse import unquote

from tri_memory.contracts import ChatTurn, EpisodicRecord, SessionSummary, require_text
from tri_memory.privacy.tombstones import Tombstones
from tri_memory.privacy.unit import began_now, begin_unit, writing

S = TypeVar("S")
Owner = Callable[[str], str | None]


def owner_of(session_key: str) -> str | None:
    """The user in a key of `Chat`, which is the percent-encoded user, "/", the rest; None where there is none."""
    user, slash, _ = session_key.partition("/")
    return unquote(user) or None if slash else None


def guarded(store: S, tombstones: Tombstones, *, owner: Owner = owner_of) -> S:
    """A session, preference, episodic, user memory or short context store behind the registry.

    `owner` says whose a session is; one that is nobody's is not guarded. ValueError for what is no such store.
    """
    for method, kind in _KINDS.items():
        if hasattr(store, method):
            return cast(S, kind(store, tombstones, owner))
    raise ValueError(f"a store has one of the methods {', '.join(_KINDS)}; {type(store).__name__} has none of them")


class _Guarded:
    def __init__(self, store: Any, tombstones: Tombstones, owner: Owner) -> None:
        self.store, self._tombstones, self._owner = store, tombstones, owner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def __repr__(self) -> str:
        return f"guarded({self.store!r})"

    async def __aenter__(self) -> Any:
        await self.store.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self.store.__aexit__(*error)

    async def forget(self, user_id: str) -> int:
        count: int = await self.store.forget(user_id)
        return count

    async def _reading(self, user_id: str) -> None:
        await begin_unit(self._tombstones, require_text("user_id", user_id))

    def _writing(
        self, user_id: str, undo: Callable[[], Awaitable[object]] | None = None, began_at: Any = None
    ) -> AbstractAsyncContextManager[None]:
        return writing(self._tombstones, user_id, undo=undo or (lambda: self.store.forget(user_id)), began_at=began_at)


class GuardedSessions(_Guarded):
    """What the user says begins a unit of work; the answer belongs to it."""

    async def append(self, session_id: str, turn: ChatTurn) -> None:
        user_id = self._owner(require_text("session_id", session_id))
        if user_id is None:
            await self.store.append(session_id, turn)
            return
        if isinstance(turn, ChatTurn) and turn.role == "user":
            await begin_unit(self._tombstones, user_id, anew=True)
        async with self._writing(user_id, undo=lambda: self.store.clear(session_id)):
            await self.store.append(session_id, turn)

    async def began(self, session_id: str) -> datetime | None:
        """The time of an exchange that begins now and is written when it is over, for `append_all`."""
        user_id = self._owner(require_text("session_id", session_id))
        return None if user_id is None else await began_now(self._tombstones, user_id)

    async def append_all(self, session_id: str, turns: Sequence[ChatTurn], began_at: datetime | None) -> None:
        """Append an exchange that began then, also what the user said in it. Raises Forgotten, and none of it stays."""
        user_id = self._owner(require_text("session_id", session_id))
        if user_id is None:
            for turn in turns:
                await self.store.append(session_id, turn)
            return
        async with self._writing(user_id, undo=lambda: self.store.clear(session_id), began_at=began_at):
            for turn in turns:
                await self.store.append(session_id, turn)

    async def get_window(self, session_id: str, limit: int = 20) -> list[ChatTurn]:
        await self._note(session_id)
        window: list[ChatTurn] = await self.store.get_window(session_id, limit)
        return window

    async def get_history(self, session_id: str) -> list[ChatTurn]:
        await self._note(session_id)
        history: list[ChatTurn] = await self.store.get_history(session_id)
        return history

    async def clear(self, session_id: str) -> None:
        await self.store.clear(session_id)

    async def list_sessions(self) -> list[SessionSummary]:
        rows: list[SessionSummary] = await self.store.list_sessions()
        return rows

    async def _note(self, session_id: str) -> None:
        user_id = self._owner(require_text("session_id", session_id))
        if user_id is not None:
            await self._reading(user_id)


class GuardedPreferences(_Guarded):
    async def get(self, user_id: str, key: str) -> str | None:
        await self._reading(user_id)
        value: str | None = await self.store.get(user_id, key)
        return value

    async def set(self, user_id: str, key: str, value: str) -> bool:
        async with self._writing(user_id):
            kept: bool = await self.store.set(user_id, key, value)
            return kept

    async def all(self, user_id: str) -> dict[str, str]:
        await self._reading(user_id)
        found: dict[str, str] = await self.store.all(user_id)
        return found


class GuardedEpisodes(_Guarded):
    async def remember(self, record: EpisodicRecord) -> None:
        async with self._writing(getattr(record, "user_id", "")):
            await self.store.remember(record)

    async def recall(self, embedding: Any, k: int = 3, *, user_id: str) -> Any:
        await self._reading(user_id)
        return await self.store.recall(embedding, k, user_id=user_id)

    async def archived(self, user_id: str) -> Any:
        await self._reading(user_id)
        return await self.store.archived(user_id)

    async def restore(self, user_id: str, session_id: str) -> bool:
        async with self._writing(user_id):
            done: bool = await self.store.restore(user_id, session_id)
            return done


class GuardedUserMemory(_Guarded):
    async def put(self, user_id: str, memory_type: Any, entity_id: str, content: Any, **options: Any) -> Any:
        async with self._writing(user_id, began_at=options.get("began_at")):
            return await self.store.put(user_id, memory_type, entity_id, content, **options)

    async def find(self, user_id: str, **what: Any) -> Any:
        await self._reading(user_id)
        return await self.store.find(user_id, **what)

    async def version(self, user_id: str) -> int:
        number: int = await self.store.version(user_id)
        return number

    async def deactivate(self, user_id: str) -> int:
        count: int = await self.store.deactivate(user_id)
        return count

    async def purge(self, before: Any) -> int:
        count: int = await self.store.purge(before)
        return count


class GuardedShortContext(_Guarded):
    async def put(self, user_id: str, turns: Any) -> None:
        async with self._writing(user_id):
            await self.store.put(user_id, turns)

    async def get(self, user_id: str) -> Any:
        await self._reading(user_id)
        return await self.store.get(user_id)


_KINDS: dict[str, type[_Guarded]] = {
    "append": GuardedSessions,
    "remember": GuardedEpisodes,
    "set": GuardedPreferences,
    "deactivate": GuardedUserMemory,
    "put": GuardedShortContext,
}
