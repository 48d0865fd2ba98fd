"""An answer of chapter 08 held against each engine that this machine has, and against exact arithmetic."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from tri_memory.blocking_calls import run
from tri_memory.contracts import EpisodicRecord, EpisodicStore, Recollection
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.lab import servers
from tri_memory.lab.datasets import FIRST_DAY
from tri_memory.lab.exercises.kit import Wrong

DIMENSIONS = 16
VISITS = 30
LIMIT_S = 60  # for one answer on one engine

RecallBetween = Callable[..., Awaitable[list[Recollection]]]


class Counting:
    """A store that remembers how often, and for how many rows, `recall` was called."""

    def __init__(self, store: EpisodicStore) -> None:
        self._store = store
        self.asked: list[int] = []

    async def recall(self, embedding: NDArray[np.float32], k: int = 3, *, user_id: str) -> list[Recollection]:
        self.asked.append(k)
        if len(self.asked) > 100:
            raise Wrong(
                "It asked the store 100 times and still goes on. When the store gives fewer than k, it has no more."
            )
        return await self._store.recall(embedding, k, user_id=user_id)


def everywhere(recall_between: RecallBetween, rng: random.Random) -> None:
    """Memory first, so that an empty stub starts no server; then each server. Wrong names the engine."""
    seed = rng.randrange(1 << 30)
    run(_bounded("memory", recall_between, InMemoryEpisodicStore(), seed))
    stores = servers.every_episodic_store(DIMENSIONS)
    try:
        for engine, store in stores.items():
            if engine != "memory":
                run(_bounded(engine, recall_between, store, seed))
    finally:
        for store in stores.values():
            if close := getattr(store, "close", None):
                run(close())


async def _bounded(engine: str, recall_between: RecallBetween, store: EpisodicStore, seed: int) -> None:
    try:
        await asyncio.wait_for(_hold(recall_between, store, seed), LIMIT_S)
    except Wrong as wrong:
        raise Wrong(f"{wrong} (engine: {engine})") from None
    except TimeoutError:
        raise Wrong(f"On {engine} it was still running after {LIMIT_S} s.") from None


async def _hold(recall_between: RecallBetween, store: EpisodicStore, seed: int) -> None:
    random_, user = np.random.default_rng(seed), f"exercise-{uuid4().hex}"
    days = random_.permutation(VISITS)
    vectors = random_.standard_normal((VISITS, DIMENSIONS)).astype(np.float32)
    for day, vector in zip(days, vectors, strict=True):
        at = FIRST_DAY + timedelta(days=int(day))
        await store.remember(EpisodicRecord(user, f"day-{day}", "a visit", vector, at))
        await store.remember(EpisodicRecord(f"{user}-other", f"other-{day}", "a visit", vector, at))
    query = random_.standard_normal(DIMENSIONS).astype(np.float32)
    scores = vectors @ query / np.linalg.norm(vectors, axis=1)
    nearest = [int(days[i]) for i in np.argsort(-scores)]
    for first, last, k in (
        (VISITS - 8, VISITS, 3),
        (0, VISITS, 5),
        (4, 10, 4),
        (nearest[-1], nearest[-1] + 1, 1),
        (2, 4, 5),
    ):
        expected = [f"day-{day}" for day in nearest if first <= day < last][:k]
        start, end = (FIRST_DAY + timedelta(days=day) for day in (first, last))
        counting = Counting(store)
        found = await recall_between(counting, query, user, start, end, k)
        _judge(found, expected, (first, last, k), counting)


def _judge(found: object, expected: list[str], asked: tuple[int, int, int], counting: Counting) -> None:
    first, last, k = asked
    if not isinstance(found, list) or not all(isinstance(one, Recollection) for one in found):
        raise Wrong(f"It should return a list of what store.recall gives; it returned {found!r}.")
    got = [one.session_id for one in found]
    what = f"The {k} nearest of days {first} to {last - 1} are {expected}; you return {got}."
    if any(session.startswith("other") for session in got):
        raise Wrong(f"There are another user's records in the answer: {got}.")
    inside = [s for s in got if first <= int(s.removeprefix("day-")) < last]
    if inside != got:
        edge = f"day-{last}"
        if [s for s in got if s not in inside] == [edge]:
            raise Wrong(f"A record of exactly `end` is in the answer, and the period ends before it. {what}")
        raise Wrong(f"There are records outside the period in the answer. {what}")
    if len(got) > k:
        raise Wrong(f"More than k records: asked for {k}, got {len(got)}. {what}")
    if len(got) < len(expected):
        most = max(counting.asked, default=0)
        raise Wrong(
            f"Too few: the filter came after the search and ate the answer. The store was asked for at most {most} "
            f"rows, and more of the right ones stand further back. {what}"
        )
    if got != expected:
        raise Wrong(f"The right number, but not the nearest first. {what}")
