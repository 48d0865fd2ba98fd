"""An answer to 13-2 held against each engine that this machine has."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from tri_memory.blocking_calls import run
from tri_memory.contracts import PreferenceStore
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.records import Forgotten, UserMemoryStore
from tri_memory.lab import servers
from tri_memory.lab.exercises.kit import Wrong
from tri_memory.preference.memory import InMemoryPreferenceStore
from tri_memory.privacy.tombstones import InMemoryTombstones

LIMIT_S = 30  # for one answer on one engine
SLOW_S = 0.15  # a write that takes its time

ForgetAll = Callable[..., Awaitable[dict[str, int]]]


def everywhere(answer: ForgetAll, rng: random.Random) -> None:
    """Memory first, so that an empty stub starts no server; then each server. Wrong names the engine."""
    seed = rng.randrange(1 << 30)
    run(_bounded("memory", answer, InMemoryPreferenceStore(), InMemoryUserMemoryStore(), seed))
    preferences, records = servers.every_preference_store(), servers.every_user_memory_store()
    try:
        for engine in preferences:
            if engine != "memory":
                run(_bounded(engine, answer, preferences[engine], records[engine], seed))
    finally:
        for store in (*preferences.values(), *records.values()):
            if close := getattr(store, "close", None):
                run(close())


async def _bounded(
    engine: str, answer: ForgetAll, preferences: PreferenceStore, records: UserMemoryStore, seed: int
) -> None:
    try:
        await asyncio.wait_for(_hold(answer, preferences, records, random.Random(seed)), LIMIT_S)
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


async def _hold(answer: ForgetAll, preferences: PreferenceStore, records: UserMemoryStore, rng: random.Random) -> None:
    ann, bob = (f"exercise-{uuid4().hex}" for _ in range(2))
    tombstones = InMemoryTombstones()
    writers = _Writers(preferences, tombstones, ann)
    count = rng.randrange(2, 6)
    try:
        for user in (ann, bob):
            for number in range(count):
                await preferences.set(user, f"key {number}", "BX-220719")
            await records.put(user, "case", "BX-220719", {"said": "对花生过敏"})
        await writers.begin("running")
        stores = {name: _Watched(store, writers.in_the_midst) for name, store in _named(preferences, records)}
        counts = await answer(ann, stores, tombstones)
        running = await tombstones.under_way(ann)
        await asyncio.gather(*writers.tasks)
        await _judge(preferences, records, ann, bob, count)
        if running:
            raise Wrong("It returned while a write was still under way: `drained` waits for it.")
        await _judge_counts(counts, count)
        await _judge_door(tombstones, ann)
    finally:
        await asyncio.gather(*writers.tasks, return_exceptions=True)
        for user in (ann, bob):
            await preferences.forget(user)
            await records.forget(user)


def _named(preferences: PreferenceStore, records: UserMemoryStore) -> list[tuple[str, Any]]:
    return [("preferences", preferences), ("records", records)]


async def _judge(preferences: PreferenceStore, records: UserMemoryStore, ann: str, bob: str, count: int) -> None:
    left = await preferences.all(ann)
    if "in the midst" in left:
        raise Wrong("A write began while you were deleting, and stayed: delete inside `closed`, which refuses it.")
    if "running" in left:
        raise Wrong("The write that was running when you began stands there now: wait for it, and delete after that.")
    if left:
        raise Wrong(f"{len(left)} preferences were not forgotten.")
    if await records.find(ann):
        raise Wrong("The records were not forgotten: every store has to, and not the first alone.")
    if len(await preferences.all(bob)) != count or not await records.find(bob):
        raise Wrong("Another user's entries are gone, too.")


async def _judge_counts(counts: object, count: int) -> None:
    if not isinstance(counts, dict):
        raise Wrong(f"It should return the counts by store, such as {{'preferences': 3}}; it returned {counts!r}.")
    if counts.get("records") != 1 or counts.get("preferences") != count + 1:
        raise Wrong(
            f"{count} preferences, the one that was running, and 1 record were erased; it says {counts}. What was "
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
