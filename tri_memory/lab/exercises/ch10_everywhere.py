"""An answer to 10-3 held against each engine that this machine has, and against its steps in another order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
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
from tri_memory.recall.lexical import LexicalIndex

DIMENSIONS = 64
LIMIT_S = 60  # for one answer on one engine
GAP = 0.01  # a cosine nearer to the threshold could pass on one engine and not on another
MEMORIES, PICKS, NEWEST = 30, 6, 2
WORDS = "refund parcel boots latex exam cello printer lift pump 退货 包裹 大提琴 打印机 电梯 水泵 过敏".split()

MemoryLines = Callable[..., Awaitable[list[str]]]


@dataclass(frozen=True)
class Case:
    """One person's memories and a question, with no doubt about what is picked, kept and newest."""

    texts: list[str]
    days: list[datetime]
    question: str
    least: float
    cosines: NDArray[np.float32]
    by_words: list[int]

    def lines(self, rows: Sequence[int]) -> list[str]:
        return [f"[{self.days[row]:%Y-%m-%d}] {self.texts[row]}" for row in rows]

    def kept(self, rows: Sequence[int]) -> list[int]:
        return [row for row in rows if self.cosines[row] >= self.least]

    def newest(self, rows: Sequence[int]) -> list[int]:
        return sorted(rows, key=lambda row: self.days[row], reverse=True)[:NEWEST]

    @property
    def right(self) -> list[str]:
        return self.lines(self.newest(self.kept(self.by_words[:PICKS])))

    def mistakes(self) -> dict[str, list[str]]:
        """What it gives when a step is left out, or comes at another place."""
        picked = self.by_words[:PICKS]
        by_cosine = np.argsort(-self.cosines, kind="stable").tolist()
        nearest_alone = LexicalIndex([self.texts[row] for row in by_cosine[:PICKS]]).rank(self.question, PICKS)
        return {
            "Nothing was kept out: the threshold is not applied.": self.lines(self.newest(picked)),
            "The newest were taken before the gate, which then shut on some of them. Gate first.": self.lines(
                self.kept(self.newest(picked))
            ),
            "The gate came before the picking, so that a memory far down BM25's list moved up. Pick first.": self.lines(
                self.newest(self.kept(self.by_words)[:PICKS])
            ),
            f"Only the {PICKS} nearest were looked at. Ask the store for all, and let BM25 pick.": self.lines(
                self.newest(self.kept([by_cosine[i] for i, _ in nearest_alone]))
            ),
            "They are the best by BM25, not the newest.": self.lines(self.kept(picked)[:NEWEST]),
            "They are the oldest, not the newest.": self.lines(
                sorted(self.kept(picked), key=lambda row: self.days[row])[:NEWEST]
            ),
            "More than `newest` lines.": self.lines(sorted(self.kept(picked), key=lambda row: self.days[row])[::-1]),
        }


def everywhere(answer: MemoryLines, rng: random.Random) -> None:
    """Memory first, so that an empty stub starts no server; then each server. Wrong names the engine."""
    seed = rng.randrange(1 << 30)
    cases = _cases(seed)
    run(_bounded("memory", answer, InMemoryEpisodicStore(), cases))
    stores = servers.every_episodic_store(DIMENSIONS)
    try:
        for engine, store in stores.items():
            if engine != "memory":
                run(_bounded(engine, answer, store, cases))
    finally:
        for store in stores.values():
            if close := getattr(store, "close", None):
                run(close())


async def _bounded(engine: str, answer: MemoryLines, store: EpisodicStore, cases: list[Case]) -> None:
    try:
        await asyncio.wait_for(_hold(answer, store, cases), LIMIT_S)
    except Wrong as wrong:
        raise Wrong(f"{wrong} (engine: {engine})") from None
    except TimeoutError:
        raise Wrong(f"On {engine} it was still running after {LIMIT_S} s.") from None


async def _hold(answer: MemoryLines, store: EpisodicStore, cases: list[Case]) -> None:
    for case in cases:
        user = f"exercise-{uuid4().hex}"
        other = f"{user}-other"
        try:
            await _remember(store, user, case.texts, case.days)
            await _remember(store, other, [case.question], [FIRST_DAY + timedelta(days=99)])
            await _judge(answer, store, user, case)
            if await answer(store, HashingEmbedder(DIMENSIONS), " ", user, -1.0, PICKS, NEWEST) != []:
                raise Wrong("A blank question shares no word with anything, and lines come back.")
        finally:
            for one in (user, other):
                await store.forget(one)


async def _remember(store: EpisodicStore, user: str, texts: list[str], days: list[datetime]) -> None:
    vectors = HashingEmbedder(DIMENSIONS).encode(texts)
    for i, (text, vector, day) in enumerate(zip(texts, vectors, days, strict=True)):
        await store.remember(EpisodicRecord(user, f"s{i}", text, vector, day))


@cache
def _cases(seed: int) -> list[Case]:
    rng = random.Random(seed)
    return [clear_case(rng) for _ in range(2)]


def clear_case(rng: random.Random) -> Case:
    """Drawn until the right lines and those of each mistake all differ, and no score is near a boundary."""
    for _ in range(10_000):
        texts = [" ".join(rng.sample(WORDS, rng.randrange(3, 7))) for _ in range(MEMORIES)]
        days = [FIRST_DAY + timedelta(days=day) for day in rng.sample(range(150), MEMORIES)]
        question = " ".join(rng.sample(WORDS, 3))
        vectors = HashingEmbedder(DIMENSIONS).encode([question, *texts])
        cosines = vectors[1:] @ vectors[0]
        ranking = LexicalIndex(texts).rank(question, MEMORIES)
        if len(ranking) <= PICKS or ranking[PICKS - 1][1] - ranking[PICKS][1] < 1e-3:
            continue
        least = float(np.median(cosines[[row for row, _ in ranking[:PICKS]]]))
        case = Case(texts, days, question, least, cosines, [row for row, _ in ranking])
        if len(case.right) < NEWEST or np.abs(cosines - least).min() <= GAP:
            continue
        outcomes = [case.right, *case.mistakes().values()]
        if len({frozenset(lines) for lines in outcomes}) == len(outcomes):
            return case
    raise AssertionError("no clear case in 10,000 draws")


async def _judge(answer: MemoryLines, store: EpisodicStore, user: str, case: Case) -> None:
    got = await answer(store, HashingEmbedder(DIMENSIONS), case.question, user, case.least, PICKS, NEWEST)
    if not isinstance(got, list) or not all(isinstance(line, str) for line in got):
        raise Wrong(f"It should return a list of lines; it returned {got!r}.")
    if got == case.right:
        return
    what = f"Question {case.question!r}, threshold {case.least:.2f}: expected {case.right}, got {got}."
    if any(case.question == line.partition("] ")[2] for line in got):
        raise Wrong(f"Another user's memory is in the answer. {what}")
    if sorted(got) == sorted(case.right):
        raise Wrong(f"The right lines, but the newest has to come first. {what}")
    texts = [line.partition("] ")[2] for line in case.right]
    if len(got) == len(texts) and all(line.endswith(text) for line, text in zip(got, texts, strict=True)):
        raise Wrong(f"The right memories, but a line reads [2026-03-01] text. {what}")
    for why, lines in case.mistakes().items():
        if got == lines:
            raise Wrong(f"{why} {what}")
    raise Wrong(f"Not those lines. {what}")
