"""Exact, by words, by meaning, by both: which case each of them gives, among few and among many of one user."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd

from tri_memory import PgVectorEpisodicStore
from tri_memory.contracts import EpisodicStore
from tri_memory.embedding import Embedder
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.entity.records import UserMemoryStore
from tri_memory.entity.structured import structured_recall
from tri_memory.episodic.hybrid import hybrid_recall
from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.chapters.ch11.cases import KINDS, NAMED, Asked, Case, cases, in_memory, kept, questions
from tri_memory.lab.chapters.ch11.tables import drop
from tri_memory.lab.claims import Outcome
from tri_memory.recall.lexical import LexicalIndex

EXACT, WORDS, HYBRID, COSINE = "exact", "words (BM25)", "hybrid", "cosine"
WAYS = (EXACT, WORDS, HYBRID, COSINE)
SIZES, SEEDS = (5, 20, 60, 200), (1, 2, 3)
LANGUAGES = {"en": "English", "zh": "Chinese"}
EMBEDDED = "cosine, embedding ready"
ALL_DAYS = 36_500
USER = "one"
RIGHT, NOTHING, WRONG = "the right case", "nothing", "a wrong case"


async def first(
    way: str, question: str, its: Sequence[Case], memories: UserMemoryStore, episodes: EpisodicStore, embedder: Embedder
) -> str | None:
    """The id of the case that this way puts first; None where it gives none."""
    if way == WORDS:
        ranking = _index(tuple(case.text for case in its)).rank(question, 1)
        return its[ranking[0][0]].id if ranking else None
    asking: dict[str, Any] = {"user_id": USER, "episodes": episodes, "embedder": embedder, "k": 1}
    if way == HYBRID:
        return next((hit.candidate.key for hit in await hybrid_recall(question, **asking)), None)
    if way == COSINE:
        found = await episodes.recall(embedder.encode([question])[0], 1, user_id=USER)
        return found[0].session_id if found else None
    recalled = await structured_recall(question, memories=memories, days=ALL_DAYS, **asking)
    if recalled.how == "exact":
        return recalled.memories[0].entity_id
    return recalled.episodes[0].session_id if recalled.episodes else None


@cache
def _index(texts: tuple[str, ...]) -> LexicalIndex:
    return LexicalIndex(texts)


@cache
def _asked(size: int, seed: int, language: str) -> tuple[list[Case], list[Asked]]:
    its = cases(size, seed, language)
    return its, questions(its, seed, language)


async def compare(sizes: Sequence[int] = SIZES, seeds: Sequence[int] = SEEDS) -> pd.DataFrame:
    """A row for each question and way: language, cases, seed, kind, way, outcome. All kinds among the most cases, among
    fewer only questions that name the id as it is written."""
    rows = []
    for language, seed, size in ((code, seed, size) for code in LANGUAGES for seed in seeds for size in sizes):
        its, asked = _asked(size, seed, language)
        kinds = KINDS if size == max(sizes) else (NAMED,)
        stores = await in_memory(its, USER, usual())
        for one in asked:
            for way in WAYS if one.kind in kinds else ():
                got = await first(way, one.question, its, *stores, usual())
                outcome = NOTHING if got is None else RIGHT if got == one.meant else WRONG
                rows.append((LANGUAGES[language], size, seed, one.kind, way, outcome, one.meant is None))
    return pd.DataFrame(rows, columns=["language", "cases", "seed", "kind", "way", "outcome", "nothing_is_right"])


def shares(table: pd.DataFrame) -> pd.DataFrame:
    """Per cent right of the questions that name an id: by language, cases, way, seed."""
    its = table[table.kind == NAMED]
    share = its.assign(right=100.0 * (its.outcome == RIGHT))
    return share.groupby(["language", "cases", "way", "seed"], sort=False).right.mean().reset_index()


async def times(url: str, sizes: Sequence[int] = SIZES, repeat: int = 40) -> pd.DataFrame:
    """Milliseconds of one question in Postgres, the median of `repeat` of them, one after the other: cases, way, ms.

    The questions are new to the embedder, as they are in life. Tables of its own, gone at the end."""
    from tri_memory.embedding import default_embedder

    embedder, tables, rows = default_embedder(), [f"lesson_{uuid4().hex}" for _ in range(2)], []
    its, _ = _asked(max(sizes), SEEDS[0], "en")
    memories = PostgresUserMemoryStore(url, table=tables[0])
    episodes = PgVectorEpisodicStore(url, embedder.dimensions, table=tables[1])
    try:
        for before, size in zip((0, *sizes), sizes, strict=False):
            await kept(its[before:size], USER, usual(), memories, episodes)
            rows += [(size, way, ms) for way, ms in await _each(its[:size], memories, episodes, embedder, repeat)]
    finally:
        await memories.close()
        await episodes.close()
        for table in tables:
            drop(url, table)
    return pd.DataFrame(rows, columns=["cases", "way", "ms"])


async def _each(
    its: list[Case], memories: UserMemoryStore, episodes: EpisodicStore, embedder: Embedder, repeat: int
) -> list[tuple[str, float]]:
    asked = [f"What was agreed on {its[i % len(its)].id}? ({i})" for i in range(repeat)]
    vectors = iter(np.repeat(usual().encode([its[0].text]), repeat + 1, axis=0))

    async def lookup(question: str) -> object:
        return await first(EXACT, question, its, memories, episodes, embedder)

    async def fused(question: str) -> object:
        return await first(HYBRID, question, its, memories, episodes, embedder)

    async def near(question: str) -> object:
        return await first(COSINE, question, its, memories, episodes, embedder)

    async def near_without_embedding(question: str) -> object:
        return await episodes.recall(next(vectors), 1, user_id=USER)

    ways = {EXACT: lookup, HYBRID: fused, COSINE: near, EMBEDDED: near_without_embedding}
    return [(way, await _median_ms(call, asked)) for way, call in ways.items()]


async def _median_ms(call: Callable[[str], Awaitable[object]], asked: list[str]) -> float:
    await call(f"{asked[0]} once to warm up")
    taken = []
    for question in asked:
        started = time.perf_counter()
        await call(question)
        taken.append(1e3 * (time.perf_counter() - started))
    return statistics.median(taken)


def sentence(table: pd.DataFrame, timed: pd.DataFrame) -> str:
    """What was measured of C09."""
    by = shares(table).groupby(["cases", "way"]).right.mean().round(0)
    few, many = min(table.cases), max(table.cases)
    ms = timed[timed.cases == many].set_index("way").ms
    return (
        f"Of questions that name an id as it is written, right: exact {by[many, EXACT]:.0f} %, cosine "
        f"{by[few, COSINE]:.0f} % among {few} cases and {by[many, COSINE]:.0f} % among {many}, words "
        f"{by[many, WORDS]:.0f} %. In Postgres, with {many} cases, the exact way answers {ms[COSINE] / ms[EXACT]:.1f} "
        f"times as many questions a second as the cosine, and {ms[EMBEDDED] / ms[EXACT]:.1f} times as many where the "
        "question's embedding is there already."
    )


def verdict(table: pd.DataFrame) -> Outcome:
    """The 100 % must be reached, and the 43 % lie between the rates of few and of many cases."""
    by = shares(table).groupby(["way", "cases"]).right.mean()
    return "depends" if by[EXACT].min() > 99 and by[COSINE].min() <= 43 <= by[COSINE].max() else "fails"
