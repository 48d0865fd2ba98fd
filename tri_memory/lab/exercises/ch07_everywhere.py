"""An answer to 07-3 held against each engine that this machine has, and against exact arithmetic."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from tri_memory.blocking_calls import run
from tri_memory.contracts import EpisodicRecord, EpisodicStore
from tri_memory.embedding import HashingEmbedder
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.lab import servers
from tri_memory.lab.datasets import FIRST_DAY
from tri_memory.lab.exercises.kit import Wrong

DIMENSIONS = 64
LIMIT_S = 60  # for one answer on one engine
PATIENCE_S = 3  # for the loop to run something else; a busy machine takes a while
GAP = 0.01  # scores that lie nearer to each other may change places on an engine with half precision
WORDS = "refund parcel boots latex exam cello printer lift pump 退货 包裹 鞋 考试 大提琴 打印机 电梯 水泵 过敏".split()

AnswerSessions = Callable[..., Awaitable[list[str]]]


class Watched:
    """An embedder whose work ends when another coroutine ran while it worked, or after `PATIENCE_S` without."""

    name, dimensions = "watched", DIMENSIONS

    def __init__(self) -> None:
        self._real = HashingEmbedder(DIMENSIONS)
        self._loop = asyncio.get_running_loop()
        self._others_ran = threading.Event()
        self.blocked = False

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if isinstance(texts, str):
            raise Wrong("encode takes a list of texts: encode([question]), and the vector is its first row.")
        self._loop.call_soon_threadsafe(self._others_ran.set)
        if not self._others_ran.wait(PATIENCE_S):
            self.blocked = True
        return self._real.encode(texts)


def everywhere(answer: AnswerSessions, rng: random.Random) -> None:
    """Memory first, so that an empty stub starts no server; then each server. Wrong names the engine."""
    seed = rng.randrange(1 << 30)
    run(_bounded("memory", answer, InMemoryEpisodicStore(), seed))
    stores = servers.every_episodic_store(DIMENSIONS)
    try:
        for engine, store in stores.items():
            if engine != "memory":
                run(_bounded(engine, answer, store, seed))
    finally:
        for store in stores.values():
            if close := getattr(store, "close", None):
                run(close())


async def _bounded(engine: str, answer: AnswerSessions, store: EpisodicStore, seed: int) -> None:
    user = f"exercise-{uuid4().hex}"
    try:
        await asyncio.wait_for(_hold(answer, store, random.Random(seed), user), LIMIT_S)
    except Wrong as wrong:
        raise Wrong(f"{wrong} (engine: {engine})") from None
    except TimeoutError:
        raise Wrong(f"On {engine} it was still running after {LIMIT_S} s.") from None
    finally:
        for one in (user, f"{user}-other"):
            await store.forget(one)


async def _hold(answer: AnswerSessions, store: EpisodicStore, rng: random.Random, user: str) -> None:
    embedder = HashingEmbedder(DIMENSIONS)
    texts = [" ".join(rng.sample(WORDS, 5)) for _ in range(12)]
    for i, (text, vector) in enumerate(zip(texts, embedder.encode(texts), strict=True)):
        await store.remember(EpisodicRecord(user, f"s{i}", text, vector, FIRST_DAY))
        await store.remember(EpisodicRecord(f"{user}-other", f"other-{i}", text, vector, FIRST_DAY))
    for _ in range(4):
        question, k, least, expected = _clear_question(texts, embedder, rng)
        await _ask(answer, store, question, user, k, least, expected)
    await _ask(answer, store, "  ", user, 3, -1.0, [])
    await _ask(answer, store, "refund", f"{user}-nobody", 3, -1.0, [])


def _clear_question(
    texts: list[str], embedder: HashingEmbedder, rng: random.Random
) -> tuple[str, int, float, list[tuple[str, float]]]:
    """A question, k and a threshold that leave no doubt: no two scores, and no score and the threshold, are near."""
    vectors = embedder.encode(texts)
    while True:
        question, k = " ".join(rng.sample(WORDS, 3)), rng.randrange(2, 5)
        scores = vectors @ embedder.encode([question])[0]
        order = np.argsort(-scores, kind="stable")
        best = scores[order[: k + 1]]
        if np.diff(best).max() > -GAP:
            continue
        kept = rng.randrange(1, k + 1)
        least = float(best[kept - 1] + best[kept]) / 2
        if best[kept - 1] - best[kept] > 2 * GAP:
            return question, k, least, [(f"s{row}", float(scores[row])) for row in order[:kept]]


async def _ask(
    answer: AnswerSessions,
    store: EpisodicStore,
    question: str,
    user: str,
    k: int,
    least: float,
    expected: list[tuple[str, float]],
) -> None:
    embedder = Watched()
    found = await answer(store, embedder, question, user, k, least)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise Wrong(f"It should return a list of session ids; it returned {found!r}.")
    wanted = [session for session, _ in expected]
    what = f"{question!r}, k={k}, least={least:.2f}: expected {wanted}, got {found}."
    if any(session.startswith("other") for session in found):
        raise Wrong(f"Sessions of another user are in the answer. {what}")
    if found != wanted:
        if len(found) > k:
            raise Wrong(f"More than k sessions. {what}")
        if found[: len(wanted)] == wanted:
            raise Wrong(f"Sessions that score less than `least` are in the answer. {what}")
        if sorted(found) == sorted(wanted):
            raise Wrong(f"The right sessions, but not the best first. {what}")
        raise Wrong(f"Not the k nearest that reach `least`. {what}")
    if embedder.blocked:
        raise Wrong("While the embedder worked, no other coroutine could run. Encode in a thread, as the archive does.")
