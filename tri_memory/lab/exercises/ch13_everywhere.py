"""An answer to 13-2 held against each engine that this machine has."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from tri_memory.blocking_calls import run
from tri_memory.contracts import ChatTurn, PreferenceStore, SessionStore
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.records import Forgotten, UserMemoryStore
from tri_memory.lab import servers
from tri_memory.lab.exercises.kit import Wrong
from tri_memory.preference.memory import InMemoryPreferenceStore
from tri_memory.privacy.forgettable import Sessions
from tri_memory.privacy.tombstones import InMemoryTombstones
from tri_memory.session.memory import InMemorySessionStore

LIMIT_S = 30  # for one answer on one engine
SLOW_S = 0.15  # a write that takes its time

ForgetAll = Callable[..., Awaitable[dict[str, int]]]


def everywhere(answer: ForgetAll, rng: random.Random) -> None:
    """Memory first, so that an empty stub starts no server; then each server. Wrong names the engine."""
    seed = rng.randrange(1 << 30)
    memory = _Stores(InMemoryPreferenceStore(), InMemoryUserMemoryStore(), InMemorySessionStore())
    run(_bounded("memory", answer, memory, seed))
    preferences, records = servers.every_preference_store(), servers.every_user_memory_store()
    sessions = servers.every_session_store()
    try:
        for engine in preferences:
            if engine != "memory":
                stores = _Stores(preferences[engine], records[engine], sessions.get(engine))
                run(_bounded(engine, answer, stores, seed))
    finally:
        for store in (*preferences.values(), *records.values(), *sessions.values()):
            if close := getattr(store, "close", None):
                run(close())


@dataclass
class _Stores:
    """Of one engine; the sessions are None where this machine has no such Redis."""

    preferences: PreferenceStore
    records: UserMemoryStore
    sessions: SessionStore | None

    def named(self) -> dict[str, Any]:
        named: dict[str, Any] = {"preferences": self.preferences, "records": self.records}
        return named if self.sessions is None else named | {"sessions": Sessions(self.sessions)}


async def _bounded(engine: str, answer: ForgetAll, stores: _Stores, seed: int) -> None:
    try:
        await asyncio.wait_for(_hold(answer, stores, random.Random(seed)), LIMIT_S)
    except Wrong as wrong:
        raise Wrong(f"{wrong} (engine: {engine})") from None
    except TimeoutError:
        raise Wrong(f"On {engine} it was still running after {LIMIT_S} s.") from None


class _Watched:
    """A store as the answer sees it: the first `forget` of the user lets another write try to begin."""

    def __init__(self, store: Any, on_forget: Callable[[], Awaitable[None]]) -> None:
        self._store, self._on_forget = store, on_forget

    async def forget(self, user_id: str) -> int:
        await self._on_forget()
        count: int = await self._store.forget(user_id)
        return count


class _Writers:
    """One write that runs when the forgetting begins, and one that tries to begin in the midst of it."""

    def __init__(self, store: PreferenceStore, tombstones: InMemoryTombstones, user: str) -> None:
        self._store, self._tombstones, self._user = store, tombstones, user
        self.tasks: list[asyncio.Task[None]] = []

    async def begin(self, key: str) -> None:
        """Announced before this returns; Forgotten where the door is closed."""
        write = await self._tombstones.begin(self._user)

        async def slowly() -> None:
            await asyncio.sleep(SLOW_S)
            await self._store.set(self._user, key, "BX-220719")
            await self._tombstones.end(write)

        self.tasks.append(asyncio.create_task(slowly()))

    async def in_the_midst(self) -> None:
        if len(self.tasks) == 1:
            try:
                await self.begin("in the midst")
            except Forgotten:
                return


async def _hold(answer: ForgetAll, stores: _Stores, rng: random.Random) -> None:
    ann, bob = (f"exercise-{uuid4().hex}" for _ in range(2))
    tombstones, count = InMemoryTombstones(), rng.randrange(2, 6)
    writers = _Writers(stores.preferences, tombstones, ann)
    try:
        for user in (ann, bob):
            await _plant(stores, user, count)
        await writers.begin("running")
        watched = {name: _Watched(store, writers.in_the_midst) for name, store in stores.named().items()}
        counts = await answer(ann, watched, tombstones)
        running = await tombstones.under_way(ann)
        await asyncio.gather(*writers.tasks)
        await _judge(stores, ann, bob, count)
        if running:
            raise Wrong("It returned while a write was still under way: `drained` waits for it.")
        _judge_counts(counts, dict.fromkeys(watched, 1) | {"preferences": count + 1})
        await _judge_door(tombstones, ann)
    finally:
        await asyncio.gather(*writers.tasks, return_exceptions=True)
        for user in (ann, bob):
            for store in stores.named().values():
                await store.forget(user)


async def _plant(stores: _Stores, user: str, count: int) -> None:
    for number in range(count):
        await stores.preferences.set(user, f"key {number}", "BX-220719")
    await stores.records.put(user, "case", "BX-220719", {"said": "对花生过敏"})
    if stores.sessions is not None:
        await stores.sessions.append(f"{user}/s1", ChatTurn("user", "BX-220719，我对花生过敏。"))


async def _judge(stores: _Stores, ann: str, bob: str, count: int) -> None:
    left = await stores.preferences.all(ann)
    if "in the midst" in left:
        raise Wrong("A write began while you were deleting, and stayed: delete inside `closed`, which refuses it.")
    if "running" in left:
        raise Wrong("The write that was running when you began stands there now: wait for it, and delete after that.")
    for name, store in stores.named().items():
        if found := await _found_in(name, store, ann):
            raise Wrong(f"{found} of {name} were not forgotten: each store of `stores` has to.")
        expected = count if name == "preferences" else 1
        if await _found_in(name, store, bob) != expected:
            raise Wrong(f"Another user's {name} are gone, too.")


async def _found_in(name: str, store: Any, user: str) -> int:
    """How many entries of this user a store has."""
    if name == "preferences":
        return len(await store.all(user))
    if name == "records":
        return len(await store.find(user))
    return int(await store.find(user, ""))


def _judge_counts(counts: object, expected: dict[str, int]) -> None:
    if not isinstance(counts, dict):
        raise Wrong(f"It should return the counts by store, such as {{'preferences': 3}}; it returned {counts!r}.")
    if counts != expected:
        raise Wrong(
            f"These were erased, the one that was being written among them: {expected}. It says {counts}. What was "
            "deleted at a first try counts as well."
        )


async def _judge_door(tombstones: InMemoryTombstones, user: str) -> None:
    try:
        write = await tombstones.begin(user)
    except Forgotten:
        raise Wrong("The door stays shut: the user can never write again. Leave `closed` when it is done.") from None
    await tombstones.end(write)
    if await tombstones.forgotten_at(user) is None:
        raise Wrong("Nothing is noted in the registry, so a queued job from before would be let in: use `closed`.")
