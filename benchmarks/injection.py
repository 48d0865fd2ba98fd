"""From a question to the prompt with fenced memory, for a user with 10,000 memories: P50 and P95 beside the 50 ms goal.

The default embedder, a budget of 2,000 tokens; recall by cosine, and by cosine and words. Timed is what a chat traces:
write the turn, notice, embed, recall, fuse, fill the prompt; not the model's answer. The words of a memory are counted
when a question first meets it, so questions come in two rounds: in the first most of them meet new memories, in the
second few do.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import numpy as np
import psycopg

from benchmarks.timing import Row
from tri_memory import (
    EpisodicRecord,
    InMemoryEpisodicStore,
    InMemoryPreferenceStore,
    InMemorySessionStore,
    PgVectorEpisodicStore,
    default_embedder,
    engines,
)
from tri_memory.agent.chat import Chat
from tri_memory.agent.trace import TurnTrace
from tri_memory.contracts import EpisodicStore

MEMORIES, QUESTIONS, GOAL_MS = 10_000, 200, 50.0
THINGS = "boots gloves jacket lamp kettle printer parcel invoice voucher thermostat tent pump bicycle helmet".split()
DOINGS = "returned ordered exchanged asked-about complained-about paid-for lost repaired cancelled praised".split()
PLACES = "Leeds York Hull Bath Oxford Derby Exeter Lincoln Durham Wells".split()


def rows() -> Iterator[Row]:
    records = _records()
    with asyncio.Runner() as runner:
        memory = InMemoryEpisodicStore()
        runner.run(_remember(memory, records))
        yield from _both(runner, memory, "memory")
        with engines.postgres(prefer="embedded") as server:
            table = f"bench_{uuid4().hex}"
            try:
                store = runner.run(PgVectorEpisodicStore.connect(server.url, table=table))
                runner.run(_remember(store, records))
                yield from _both(runner, store, f"Postgres, {server.how}")
                runner.run(store.close())
            finally:
                with psycopg.connect(server.url, autocommit=True) as connection:
                    connection.execute(f"DROP TABLE IF EXISTS {table}, {table}_archive")


def _both(runner: asyncio.Runner, store: EpisodicStore, where: str) -> Iterator[Row]:
    for hybrid in (False, True):
        how = "cosine and words" if hybrid else "cosine"
        times = runner.run(_ask(store, hybrid))
        work = f"question to prompt, {MEMORIES:,} memories, {how}, {where}"
        rounds = {"new memories": times[1 : QUESTIONS + 1], "known ones": times[QUESTIONS + 1 :]}
        yield _row(f"{work}: first question", times[0], goal=float("inf"))
        for name, ms in rounds.items():
            for share in (50, 95):
                yield _row(f"{work}: {name}, P{share}", float(np.percentile(ms, share)), goal=1.0)


def _row(work: str, ms: float, *, goal: float) -> Row:
    return Row(work, ms * 1e3, f"the goal of {GOAL_MS:g} ms", GOAL_MS * 1e3, ms / GOAL_MS, goal)


async def _ask(store: EpisodicStore, hybrid: bool) -> list[float]:
    """Milliseconds of the first question, then of each of the two rounds."""
    traces: list[TurnTrace] = []
    chat = Chat(
        "u",
        sessions=InMemorySessionStore(),
        preferences=InMemoryPreferenceStore(),
        episodes=store,
        embedder=default_embedder(),
        model=_silent,
        budget=2_000,
        hybrid=hybrid,
        trace=traces,
    )
    chance = random.Random(7)
    for _ in range(2 * QUESTIONS + 1):
        number = chance.randrange(MEMORIES)
        await chat.say(f"What happened with the {chance.choice(THINGS)} BX-{number:05d} in {chance.choice(PLACES)}?")
        assert '<memory name="episodes">' in chat.last_prompt[0]["content"]
    return [trace.latency_ms for trace in traces]


async def _silent(messages: object) -> str:
    return "All right."


def _records() -> list[EpisodicRecord]:
    chance = random.Random(5)
    texts = [
        f"On visit {i} the user {chance.choice(DOINGS)} the {chance.choice(THINGS)} with the number BX-{i:05d}, "
        f"bought in {chance.choice(PLACES)}, and wanted the {chance.choice(THINGS)} sent to {chance.choice(PLACES)}."
        for i in range(MEMORIES)
    ]
    vectors = np.concatenate([default_embedder().encode(texts[at : at + 500]) for at in range(0, MEMORIES, 500)])
    start = datetime(2026, 3, 1, tzinfo=UTC)
    return [
        EpisodicRecord("u", f"s{i}", text, vector, start + timedelta(minutes=i))
        for i, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]


async def _remember(store: EpisodicStore, records: list[EpisodicRecord]) -> None:
    for record in records:
        await store.remember(record)
