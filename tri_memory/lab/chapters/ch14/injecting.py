"""Claim C22: from the question to the prompt, in milliseconds, by engine and by how many memories the user has.

Timed is what a chat traces (`latency_ms`): write the turn, notice, embed, recall, rank, fill. Not the model's answer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

import numpy as np
import pandas as pd
from pgvector import HalfVector

from tri_memory import (
    InMemoryEpisodicStore,
    InMemoryPreferenceStore,
    InMemorySessionStore,
    PgVectorEpisodicStore,
    default_embedder,
)
from tri_memory.agent.chat import Chat
from tri_memory.agent.trace import TurnTrace
from tri_memory.agent.word_counts import counts_of
from tri_memory.contracts import EpisodicRecord, EpisodicStore
from tri_memory.lab.chapters.ch08.plain import connect
from tri_memory.lab.chapters.ch11.tables import drop
from tri_memory.lab.claims import Outcome
from tri_memory.lab.datasets import FIRST_DAY

SIZES, QUESTIONS, CLAIMED_MS = (100, 1_000, 4_000), 30, 200.0
FIRSTS, MANY, WELL_MEASURED = 3, 200, ("Postgres", "by meaning and words", 1_000)
HOW = {"by meaning": False, "by meaning and words": True}
BUDGET = 2_000
USER = "one"
_THINGS = (
    "boots",
    "gloves",
    "jacket",
    "lamp",
    "kettle",
    "printer",
    "parcel",
    "invoice",
    "靴子",
    "台灯",
    "打印机",
    "发票",
)
_PLACES = ("Leeds", "York", "Hull", "Bath", "杭州", "苏州", "成都")


async def times(url: str, sizes: Sequence[int] = SIZES, repeat: int = QUESTIONS, many: int = MANY) -> pd.DataFrame:
    """A row an engine, way and number of memories, in ms: `first`, the slowest of some first questions after a start,
    P50 and P95 of the `questions` that follow, one after the other, and the 95 % interval of that P95 (low, high).

    Its table is gone at the end.
    """
    rows: list[tuple[object, ...]] = []
    made, embedder = _records(max(sizes), default_embedder().dimensions), default_embedder()
    table = f"lesson_{uuid4().hex}"
    memory = InMemoryEpisodicStore()
    postgres = await PgVectorEpisodicStore.connect(url, embedder.dimensions, table=table)
    try:
        for before, size in zip((0, *sizes), sizes, strict=False):
            for record in made[before:size]:
                await memory.remember(record)
            _copy(url, table, made[before:size])
            for engine, store in (("memory", memory), ("Postgres", postgres)):
                for how, hybrid in HOW.items():
                    questions = many if (engine, how, size) == WELL_MEASURED else repeat
                    first = [(await _ask(store, hybrid, size, 1, seed, new_process=True))[0] for seed in range(FIRSTS)]
                    ms = await _ask(store, hybrid, size, questions, FIRSTS)
                    rows.append((engine, how, size, max(first), *p50_p95_interval(ms), questions))
    finally:
        await postgres.close()
        drop(url, table)
    return pd.DataFrame(rows, columns=["engine", "how", "memories", "first", "p50", "p95", "low", "high", "questions"])


async def _ask(
    store: EpisodicStore, hybrid: bool, size: int, repeat: int, seed: int, new_process: bool = False
) -> list[float]:
    """In a new session. A new process has read none of the user's memories yet."""
    traces: list[TurnTrace] = []
    if new_process:
        counts_of(store).clear()
    chat = Chat(
        USER,
        sessions=InMemorySessionStore(),
        preferences=InMemoryPreferenceStore(),
        episodes=store,
        embedder=default_embedder(),
        model=_silent,
        budget=BUDGET,
        hybrid=hybrid,
        trace=traces,
    )
    chance = random.Random(f"{size} {seed}")
    for _ in range(repeat):
        thing, place = chance.choice(_THINGS), chance.choice(_PLACES)
        await chat.say(f"What happened with the {thing} BX-{chance.randrange(size):05d} in {place}?")
    return [trace.latency_ms for trace in traces]


def p50_p95_interval(ms: Sequence[float]) -> tuple[float, float, float, float]:
    """P50, P95, and the 95 % interval of the P95 from resampling the questions."""
    drawn = np.random.default_rng(14).choice(ms, (1_000, len(ms)))
    low, high = np.percentile(np.percentile(drawn, 95, axis=1), [2.5, 97.5])
    p50, p95 = np.percentile(ms, [50, 95])
    return float(p50), float(p95), float(low), float(high)


async def _silent(messages: object) -> str:
    return "All right."


def _records(count: int, dimensions: int) -> list[EpisodicRecord]:
    """Generated visits. Their vectors are random: the time doesn't depend on what is near."""
    chance = random.Random(14)
    vectors = np.random.default_rng(14).standard_normal((count, dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        EpisodicRecord(
            USER,
            f"s{i}",
            f"Visit {i}: the {chance.choice(_THINGS)} with the number BX-{i:05d}, bought in {chance.choice(_PLACES)}, "
            f"came back; the {chance.choice(_THINGS)} went to {chance.choice(_PLACES)}.",
            vector,
            FIRST_DAY + timedelta(minutes=i),
        )
        for i, vector in enumerate(vectors)
    ]


def _copy(url: str, table: str, records: Sequence[EpisodicRecord]) -> None:
    """Rows first, then the store's index over all of them: to build it once is faster than to mend it at every row."""
    copy = f"COPY {table} (user_id, session_id, summary, embedding, created_at) FROM STDIN (FORMAT BINARY)"
    with connect(url) as connection:
        index = connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s AND indexdef LIKE '%%hnsw%%'", [table]
        ).fetchone()
        if index is None:
            raise RuntimeError(f"the table {table} has no HNSW index")
        connection.execute(f"DROP INDEX {index[0]}")
        with connection.cursor() as cursor, cursor.copy(copy) as rows:
            rows.set_types(["text", "text", "text", "halfvec", "timestamptz"])
            for one in records:
                vector = HalfVector(np.asarray(one.embedding, np.float32))
                rows.write_row((one.user_id, one.session_id, one.summary, vector, one.created_at))
        connection.execute(index[1])


def as_table(table: pd.DataFrame) -> pd.DataFrame:
    """The rows by meaning and words, in whole milliseconds."""
    its = table[table.how == "by meaning and words"]
    columns = ["engine", "memories", "questions", "first", "p50", "p95", "low", "high"]
    return its[columns].round(0).astype(dict.fromkeys(columns[3:], int)).set_index(["engine", "memories"])


def sentence(table: pd.DataFrame) -> str:
    """What the run says about C22."""
    worst, first = table.loc[table.p95.idxmax()], table.loc[table["first"].idxmax()]
    return (
        f"The highest P95 is {worst.p95:.0f} ms [{worst.low:.0f}; {worst.high:.0f}] ({worst.how}, {worst.engine}, "
        f"{worst.memories:,} memories, {worst.questions} questions), the slowest first question after a start "
        f"{first['first']:.0f} ms ({first.how}, {first.engine}, {first.memories:,}). One user, random vectors, one "
        "question at a time, this machine, an embedder in the same process."
    )


def verdict(table: pd.DataFrame) -> Outcome:
    """`holds` where the interval of every P95 and every first question is below the claim's, `fails` where every
    interval is above."""
    if (table.high < CLAIMED_MS).all() and (table["first"] < CLAIMED_MS).all():
        return "holds"
    return "fails" if (table.low >= CLAIMED_MS).all() else "depends"
