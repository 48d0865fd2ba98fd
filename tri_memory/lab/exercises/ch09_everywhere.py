"""The night's work of chapter 09 on each engine that this machine has: run twice, and after a run that was killed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import uuid4

import numpy as np

from tri_memory.blocking_calls import run
from tri_memory.contracts import EpisodicRecord
from tri_memory.episodic.fading import Faded, FadingStore
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.lab import servers
from tri_memory.lab.exercises.kit import Wrong

DIMENSIONS = 4
LIMIT_S = 60  # for one answer on one engine
FRESH, OVER = (5, 20, 41), (95, 130, 170)  # ages in days; at none of them does a midnight change anything

Pair = tuple[str, str]
Nightly = Callable[[Any, set[Pair]], Awaitable[Any]]


def everywhere(nightly: Nightly, rng: random.Random) -> None:
    """Memory first, so that an empty stub starts no server; then each server. Wrong names the engine."""
    seed = rng.randrange(1 << 30)
    run(_bounded("memory", nightly, InMemoryEpisodicStore(), seed))
    stores = servers.every_episodic_store(DIMENSIONS)
    try:
        for engine, store in stores.items():
            if engine != "memory":
                run(_bounded(engine, nightly, cast(FadingStore, store), seed))
    finally:
        for store in stores.values():
            if close := getattr(store, "close", None):
                run(close())


async def _bounded(engine: str, nightly: Nightly, store: FadingStore, seed: int) -> None:
    try:
        await asyncio.wait_for(_hold(nightly, store, random.Random(seed)), LIMIT_S)
    except Wrong as wrong:
        raise Wrong(f"{wrong} (engine: {engine})") from None
    except TimeoutError:
        raise Wrong(f"On {engine} it was still running after {LIMIT_S} s.") from None


async def _hold(nightly: Nightly, store: FadingStore, rng: random.Random) -> None:
    for killed in (False, True):
        users = [f"exercise-{uuid4().hex}" for _ in range(2)]
        over = {pair for user in users for pair in await _remember(store, user, rng)}
        hold = {(user, f"{OVER[rng.randrange(len(OVER))]} days") for user in users} | {(users[0], "5 days")}
        if killed:
            await store.fade()
        async with _watched(store, hold):
            returned = await nightly(store, set(hold))
        await _judge_state(store, users, over - hold, hold, killed)
        _judge_return(returned, [] if killed else sorted(over - hold), over & hold)
        async with _watched(store, hold):
            again = await nightly(store, set(hold))
        if again != []:
            raise Wrong(f"The second run of the same night returns {len(again)} memories, and it archived none.")
        await _judge_state(store, users, over - hold, hold, killed)
        for user in users:
            await store.forget(user)


@asynccontextmanager
async def _watched(store: FadingStore, hold: set[Pair]) -> AsyncIterator[None]:
    """Wrong where a memory on hold went through the archive, also if it was brought back at once."""
    went, fade = set[Pair](), store.fade

    async def noted(*, dry_run: bool = False) -> Faded:
        done = await fade(dry_run=dry_run)
        went.update(() if dry_run else hold.intersection(done.archived))
        return done

    store.fade = noted  # type: ignore[method-assign]
    try:
        yield
    finally:
        del store.fade
    active = {pair for pair in went if pair not in await _sleeping(store, {user for user, _ in went})}
    if active:
        raise Wrong(
            f"On hold, archived and brought back: {_sessions(active)}. Who asks in between doesn't find it, and a run "
            "that is killed there leaves it asleep. It has to weigh enough before fade() runs."
        )


async def _sleeping(store: FadingStore, users: set[str]) -> set[Pair]:
    return {(user, one.session_id) for user in users for one in await store.archived(user)}


async def _remember(store: FadingStore, user: str, rng: random.Random) -> list[Pair]:
    """Six memories; returns those that the step rule archives today."""
    ages = [*FRESH, *OVER]
    for age in rng.sample(ages, len(ages)):
        at = datetime.now(UTC) - timedelta(days=age)
        vector = np.full(DIMENSIONS, 1.0, np.float32)
        await store.remember(EpisodicRecord(user, f"{age} days", f"told {age} days ago", vector, at))
    return [(user, f"{age} days") for age in OVER]


async def _judge_state(store: FadingStore, users: list[str], gone: set[Pair], hold: set[Pair], killed: bool) -> None:
    query = np.full(DIMENSIONS, 1.0, np.float32)
    active = {(user, one.session_id) for user in users for one in await store.recall(query, 100, user_id=user)}
    archived = await _sleeping(store, set(users))
    before = "An earlier run had archived and was then killed. " if killed else ""
    if lost := _sessions(set.union(gone, hold) - active - archived):
        raise Wrong(f"Neither recalled nor archived any more: {lost}. An archive keeps what it takes.")
    if asleep := _sessions(hold & archived):
        raise Wrong(f"{before}On hold and still in the archive: {asleep}.")
    if awake := _sessions(gone & active):
        raise Wrong(f"Over, not on hold, and recalled all the same: {awake}.")


def _judge_return(returned: object, expected: list[Pair], held: set[Pair]) -> None:
    if not isinstance(returned, list):
        raise Wrong(f"It should return a list of (user, session) pairs; it returned {type(returned).__name__}.")
    pairs = [tuple(one) if isinstance(one, tuple | list) else one for one in returned]
    if pairs == expected:
        return
    if any(pair in held for pair in pairs):
        raise Wrong("What is on hold stands in the returned list, and it doesn't stay archived.")
    if sorted(map(str, pairs)) == sorted(map(str, expected)):
        raise Wrong("The right memories, but not sorted.")
    raise Wrong(f"This run archived {len(expected)} for good, and you return {len(pairs)}.")


def _sessions(pairs: set[Pair]) -> str:
    return ", ".join(sorted(session for _, session in pairs))
