"""What can be told to forget a user: a small protocol, and every store of this package behind it."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable, Iterable, MutableSequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote

import numpy as np

from tri_memory.agent.trace import process_mask
from tri_memory.contracts import EpisodicStore, PreferenceStore, SessionStore
from tri_memory.entity.graph import EntityGraph
from tri_memory.entity.records import UserMemoryStore

EVERYTHING = 1_000_000  # records of one user
PASSES = 5  # over a list of sessions, while others go on writing to it


@runtime_checkable
class Forgettable(Protocol):
    """Anything that holds something of a user. What registers itself needs no more than this."""

    @property
    def name(self) -> str: ...

    async def forget(self, user_id: str) -> int:
        """Let go of everything of this user at once; how many entries that were. Again: 0."""

    async def find(self, user_id: str, canary: str) -> int | None:
        """How many entries that this user's calls could still meet have `canary` in them, "" for any; None where that
        can't be searched."""


@runtime_checkable
class Purgeable(Protocol):
    """What hides at once and deletes later."""

    async def purge(self, before: datetime) -> int:
        """Delete for good what was hidden before that time, of all users; how many entries."""


class Sessions:
    """The sessions of `Chat`, and the trace of their folds, which names them."""

    def __init__(self, store: SessionStore, *, prefix_of: Callable[[str], str] | None = None) -> None:
        self.name, self._store = "sessions", store
        self._prefix_of = prefix_of or (lambda user_id: quote(user_id, safe="") + "/")

    async def forget(self, user_id: str) -> int:
        cleared: set[str] = set()
        for _ in range(PASSES):
            keys = await self._keys(user_id)
            for key in keys:
                await self._store.clear(key)
            cleared |= set(keys)
            if not keys:
                break
        prefix, trace = self._prefix_of(user_id), getattr(self._store, "trace", None)
        if trace is not None:
            stay = [fold for fold in trace if not fold.session_id.startswith(prefix)]
            trace.clear()
            trace.extend(stay)
        return len(cleared)

    async def find(self, user_id: str, canary: str) -> int:
        found = 0
        for key in await self._keys(user_id):
            turns = [turn.content for turn in await self._store.get_history(key)]
            found += canary in key or any(canary in text for text in turns)
        return found

    async def _keys(self, user_id: str) -> list[str]:
        prefix = self._prefix_of(user_id)
        return [row.session_id for row in await self._store.list_sessions() if row.session_id.startswith(prefix)]


class Preferences:
    def __init__(self, store: PreferenceStore) -> None:
        self.name, self._store = "preferences", store

    async def forget(self, user_id: str) -> int:
        return await self._store.forget(user_id)

    async def find(self, user_id: str, canary: str) -> int:
        return sum(canary in key or canary in value for key, value in (await self._store.all(user_id)).items())


class Episodes:
    """Active and archived. They are searched with any vector, so `dimensions` has to be known; without, only the
    archive is searched."""

    def __init__(self, store: EpisodicStore, dimensions: int | None = None) -> None:
        self.name, self._store, self._dimensions = "episodes", store, dimensions

    async def forget(self, user_id: str) -> int:
        return await self._store.forget(user_id)

    async def find(self, user_id: str, canary: str) -> int | None:
        archived = getattr(self._store, "archived", None)
        texts = [] if archived is None else [(one.session_id, one.summary) for one in await archived(user_id)]
        if self._dimensions is not None:
            probe = np.ones(self._dimensions, np.float32)
            found = await self._store.recall(probe, EVERYTHING, user_id=user_id)
            texts += [(one.session_id, one.summary) for one in found]
        count = sum(any(canary in text for text in pair) for pair in texts)
        return count if count or self._dimensions is not None else None


class UserMemories:
    """Hidden at once, deleted by `purge`."""

    def __init__(self, store: UserMemoryStore) -> None:
        self.name, self._store = "user_memory", store

    async def forget(self, user_id: str) -> int:
        return await self._store.forget(user_id)

    async def find(self, user_id: str, canary: str) -> int:
        rows = await self._store.find(user_id, limit=EVERYTHING)
        return sum(canary in f"{row.entity_id} {json.dumps(dict(row.content), ensure_ascii=False)}" for row in rows)

    async def searched(self, user_id: str) -> None:
        """A cache now has an entry for the nothing that was found, and the user's name is in its key."""
        if hasattr(self._store, "truth"):
            await self._store.deactivate(user_id)

    def owed_s(self, user_id: str) -> float | None:
        return _owed_s(self._store, user_id)

    async def purge(self, before: datetime) -> int:
        return await self._store.purge(before)


class Graph:
    def __init__(self, graph: EntityGraph) -> None:
        self.name, self._graph = "graph", graph

    async def forget(self, user_id: str) -> int:
        return self._graph.forget(user_id)

    async def find(self, user_id: str, canary: str) -> int:
        return sum(canary in node.value for node in self._graph.of(user_id))

    async def purge(self, before: datetime) -> int:
        self._graph.purge(before)
        return 0  # notes on who was forgotten, which are no entries


class Trace:
    """A list of records such as TurnTrace, whose `user` stands behind a mask: give the mask that wrote it."""

    def __init__(self, records: MutableSequence[Any], masks: Iterable[Callable[[str], str]] = (process_mask,)) -> None:
        self.name, self._records, self._masks = "trace", records, tuple(masks)

    async def forget(self, user_id: str) -> int:
        theirs = self._of(user_id)
        self._records[:] = [record for record in self._records if not any(record is each for each in theirs)]
        return len(theirs)

    async def find(self, user_id: str, canary: str) -> int:
        return sum(canary in _as_text(record) for record in self._of(user_id))

    def _of(self, user_id: str) -> list[Any]:
        names = {user_id, *(mask(user_id) for mask in self._masks)}
        return [record for record in self._records if record.user in names]


class Held:
    """Anything with a `forget(user_id)`, also a plain function; `find` where it has one."""

    def __init__(self, name: str, holder: Any) -> None:
        self.name, self._holder = name, holder

    async def forget(self, user_id: str) -> int:
        return int(await _value(self._holder.forget(user_id)) or 0)

    async def find(self, user_id: str, canary: str) -> int | None:
        find = getattr(self._holder, "find", None)
        if find is not None and _takes(find) == 2:
            return int(await _value(find(user_id, canary)))
        get = getattr(self._holder, "get", None)
        if get is None or _takes(get) != 1:
            return None
        kept = await _value(get(user_id))
        return int(bool(kept) and canary in _as_text(kept))

    def owed_s(self, user_id: str) -> float | None:
        return _owed_s(self._holder, user_id)

    async def purge(self, before: datetime) -> int:
        purge = getattr(self._holder, "purge", None)
        return 0 if purge is None else int(await _value(purge(before)) or 0)


def _takes(method: Callable[..., Any]) -> int:
    """How many arguments it takes by position."""
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in by_position for each in inspect.signature(method).parameters.values())


def _owed_s(store: Any, user_id: str) -> float | None:
    """How many seconds copies may stay in a cache that could not be told of the forgetting; None where it was told."""
    owes = getattr(store, "owes", None)
    return float(store.ttl_s) if owes is not None and owes(user_id) else None


async def _value(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


def _as_text(value: Any) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
