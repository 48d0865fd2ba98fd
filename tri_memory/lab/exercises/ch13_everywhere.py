"""An answer to 13-2 held against each engine that this machine has."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
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
RUNNING, AT_THE_DOOR, IN_THE_MIDST = "running", "at the door", "in the midst"  # when each write begins
LOOKS = 3  # so often is the registry asked for what is under way before a write ends

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
    except (TypeError, AttributeError) as error:  # the latter on Python 3.10
        if "context manager protocol" in str(error) or str(error) == "__enter__":
            raise Wrong("`closed` waits when it ends: write `async with closed(…)`, not `with`.") from None
        raise


class _Watched:
    """A store as the answer sees it: the first `forget` of the user lets another write try to begin."""

    def __init__(self, store: Any, on_forget: Callable[[], Awaitable[None]]) -> None:
        self._store, self._on_forget = store, on_forget

    async def forget(self, user_id: str) -> int:
        await self._on_forget()
        count: int = await self._store.forget(user_id)
        return count


class _Registry(InMemoryTombstones):
    """Tells when somebody asks what is under way, and lets one more write begin just before the door shuts."""

    looks = 0
    before_shut: Callable[[], Awaitable[None]]
    on_look: Callable[[], None]

    async def shut(self, user_id: str) -> datetime:
        await self.before_shut()
        return await super().shut(user_id)

    async def under_way(self, user_id: str) -> int:
        self.looks += 1
        self.on_look()
        return await super().under_way(user_id)


class _Writers:
    """Writes of one user. None ends by the clock, so that no sleep is long enough: each ends when the registry was
    asked often enough what is under way, or when the answer is `over`."""

    def __init__(self, store: PreferenceStore, tombstones: _Registry, user: str) -> None:
        self._store, self._tombstones, self._user = store, tombstones, user
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._may_end: list[tuple[int, asyncio.Event]] = []  # at which look

    async def begin(self, key: str) -> None:
        """Once a key; announced before this returns, unless the door is closed."""
        if key in self.tasks:
            return
        try:
            write = await self._tombstones.begin(self._user)
        except Forgotten:
            return
        may_end = asyncio.Event()
        self._may_end.append((self._tombstones.looks + LOOKS, may_end))

        async def slowly() -> None:
            await may_end.wait()
            await self._store.set(self._user, key, "BX-220719")
            await self._tombstones.end(write)

        self.tasks[key] = asyncio.create_task(slowly())

    def looked(self, *, over: bool = False) -> None:
        for look, may_end in self._may_end:
            if over or self._tombstones.looks >= look:
                may_end.set()


async def _hold(answer: ForgetAll, stores: _Stores, rng: random.Random) -> None:
    ann, bob = (f"exercise-{uuid4().hex}" for _ in range(2))
    tombstones, count = _Registry(), rng.randrange(2, 6)
    writers = _Writers(stores.preferences, tombstones, ann)
    tombstones.before_shut, tombstones.on_look = partial(writers.begin, AT_THE_DOOR), writers.looked
    try:
        for user in (ann, bob):
            await _plant(stores, user, count)
        await writers.begin(RUNNING)
        midst = partial(writers.begin, IN_THE_MIDST)
        watched = {name: _Watched(store, midst) for name, store in stores.named().items()}
        counts = await answer(ann, watched, tombstones)
        asked, running = tombstones.looks > 0, await tombstones.under_way(ann)
        writers.looked(over=True)
        await asyncio.gather(*writers.tasks.values())
        await _judge(stores, ann, bob, count, asked)
        if running:
            raise Wrong("It returned while a write was still under way: `drained` waits for it.")
        _judge_counts(counts, dict.fromkeys(watched, 1) | {"preferences": count + len(writers.tasks)})
        await _judge_door(tombstones, ann)
    finally:
        writers.looked(over=True)
        await asyncio.gather(*writers.tasks.values(), return_exceptions=True)
        for user in (ann, bob):
            for store in stores.named().values():
                await store.forget(user)


async def _plant(stores: _Stores, user: str, count: int) -> None:
    for number in range(count):
        await stores.preferences.set(user, f"key {number}", "BX-220719")
    await stores.records.put(user, "case", "BX-220719", {"said": "对花生过敏"})
    if stores.sessions is not None:
        await stores.sessions.append(f"{user}/s1", ChatTurn("user", "BX-220719，我对花生过敏。"))


async def _judge(stores: _Stores, ann: str, bob: str, count: int, asked: bool) -> None:
    left = await stores.preferences.all(ann)
    if IN_THE_MIDST in left:
        raise Wrong("A write began while you were deleting, and stayed: delete inside `closed`, which refuses it.")
    if RUNNING in left:
        guessed = "" if asked else " Nobody knows how long it takes, so no sleep is right: `drained` asks the registry."
        raise Wrong(
            "The write that was running when you began stands there now: wait for it, and delete after that." + guessed
        )
    if AT_THE_DOOR in left:
        raise Wrong(
            "A write that began just before the door was shut stands there now: wait inside `closed`. What begins "
            "between `drained` and `closed` is not waited for."
        )
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
            f"These were erased, those that were being written among them: {expected}. It says {counts}. What was "
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
