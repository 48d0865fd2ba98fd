"""An answer to 11-2 held against each engine that this machine has."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from tri_memory.blocking_calls import run
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.records import UserMemoryStore
from tri_memory.lab import servers
from tri_memory.lab.exercises.kit import Wrong

LIMIT_S = 60  # for one answer on one engine

CasesNamed = Callable[..., Awaitable[list[str]]]


def everywhere(answer: CasesNamed, rng: random.Random) -> None:
    """Memory first, so that an empty stub starts no server; then each server. Wrong names the engine."""
    seed = rng.randrange(1 << 30)
    run(_bounded("memory", answer, InMemoryUserMemoryStore(), seed))
    stores = servers.every_user_memory_store()
    try:
        for engine, store in stores.items():
            if engine != "memory":
                run(_bounded(engine, answer, store, seed))
    finally:
        for store in stores.values():
            if close := getattr(store, "close", None):
                run(close())


async def _bounded(engine: str, answer: CasesNamed, store: UserMemoryStore, seed: int) -> None:
    try:
        await asyncio.wait_for(_hold(answer, store, random.Random(seed)), LIMIT_S)
    except Wrong as wrong:
        raise Wrong(f"{wrong} (engine: {engine})") from None
    except TimeoutError:
        raise Wrong(f"On {engine} it was still running after {LIMIT_S} s.") from None


async def _hold(answer: CasesNamed, store: UserMemoryStore, rng: random.Random) -> None:
    ann, bob = (f"exercise-{uuid4().hex}" for _ in range(2))
    now = datetime.now(UTC)
    numbers = rng.sample(range(2_000, 3_000), 40)
    mine, others = [f"BX-{n}" for n in numbers[:36]], [f"BX-{n}" for n in numbers[36:]]
    try:
        for hours, id in enumerate(mine, start=1):  # the first is the newest
            await store.put(ann, "case", id, {}, began_at=now - timedelta(hours=hours))
        await store.put(ann, "device", mine[0], {}, began_at=now - timedelta(minutes=3))
        await store.put(ann, "device", "PUMP-17", {}, began_at=now - timedelta(minutes=2))
        for id in others:
            await store.put(bob, "case", id, {}, began_at=now)
        await _judge(answer, store, ann, bob, mine, others, now)
    finally:
        for user in (ann, bob):
            await store.forget(user)


async def _judge(
    answer: CasesNamed, store: UserMemoryStore, ann: str, bob: str, mine: list[str], others: list[str], now: datetime
) -> None:
    since = now - timedelta(hours=30, minutes=30)
    spelled = f"订单号{mine[4].replace('-', '')}和 order #{mine[2].lower()} 呢？"
    got = await answer(store, f"What about {mine[5]} and {mine[1]}?", ann, since)
    _same(got, [mine[1], mine[5]], "two cases by name")
    _same(await answer(store, spelled, ann, since), [mine[2], mine[4]], f"“{spelled}”")
    got = await answer(store, f"And {mine[7]}, on PUMP-17, serial PUMP-17?", ann, since)
    if "PUMP-17" in got:
        raise Wrong("PUMP-17 is a device, and only cases are asked for.")
    _same(got, [mine[7]], "a case and a device")
    got = await answer(store, f"What about {mine[0]}?", ann, since)
    if got == [mine[0]] * 2:
        raise Wrong("A device with the same id came along: memory_type='case'.")
    _same(got, [mine[0]], "a case whose id a device has, too")
    got = await answer(store, f"What about {mine[33]}?", ann, since)
    if got == [mine[33]]:
        raise Wrong(f"{mine[33]} was last stated before `since`, and it comes back.")
    _same(got, [], "a case older than `since`")
    got = await answer(store, f"What about {others[0]}?", ann, since)
    if others[0] in got:
        raise Wrong(f"{others[0]} is another user's case, and it was found.")
    if got:
        raise Wrong(f"{others[0]} is another user's id: nothing is found. Got {got[:3]}, what nobody asked for.")
    got = await answer(store, "Is it the same as last time?", ann, since)
    if got:
        raise Wrong(f"The question names no case, and {len(got)} come back. Nothing named, nothing found.")
    many = mine[:25]
    got = await answer(store, " ".join(f"order {id}," for id in many), ann, since)
    if set(got) < set(many):
        raise Wrong(
            f"25 cases are named, and {len(got)} come back: `find` stops at its limit, 20, unless told otherwise."
        )
    _same(got, many, "25 cases by name")
    await _judge_blank(answer, store, others[0], since)


async def _judge_blank(answer: CasesNamed, store: UserMemoryStore, id: str, since: datetime) -> None:
    for question in (f"What about {id}?", "Like last time?"):
        try:
            got = await answer(store, question, " ", since)
        except ValueError:
            continue
        raise Wrong(f"A blank user id is no user: ValueError. For “{question}” it returned {got!r} instead.")


def _same(got: object, expected: list[str], what: str) -> None:
    if got == expected:
        return
    if not isinstance(got, list) or not all(isinstance(one, str) for one in got):
        raise Wrong(f"It should return a list of ids; for {what} it returned {str(got)[:80]}.")
    if sorted(got) == sorted(expected):
        raise Wrong(f"The right cases in the wrong order: the newest comes first. For {what}: {got}.")
    raise Wrong(f"For {what}: expected {expected}, got {got}.")
