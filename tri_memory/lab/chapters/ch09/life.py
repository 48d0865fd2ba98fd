"""Half a year of an episodic store in seconds: visits arrive, some are used, and each night the job runs."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

import pandas as pd
import psycopg

from tri_memory.clock import ManualClock
from tri_memory.contracts import EpisodicRecord, Recollection
from tri_memory.embedding import default_embedder
from tri_memory.episodic.fading import FadingStore, MemoryId
from tri_memory.episodic.pgvector import PgVectorEpisodicStore
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch09.failing import TOLD_ONCE
from tri_memory.lab.chapters.ch09.ranking import asked
from tri_memory.lab.datasets import FIRST_DAY, LAST_DAY, Session

USERS = tuple(TOLD_ONCE)


def told_once() -> dict[str, MemoryId]:
    """By user, the visit in which Gwen's latex and Xiaobei's sesame were told."""
    found = {}
    for user, text in TOLD_ONCE.items():
        question = next(q for q in asked(user[:2]).corpus.questions if (q.user_id, q.question) == (user, text))
        found[user] = MemoryId(user, question.gold_sessions[0])
    return found


async def half_year(store: FadingStore, clock: ManualClock, every: Mapping[MemoryId, int]) -> pd.DataFrame:
    """Let 180 days pass and return a row an archived memory: day, user, visit, its age in days, uses.

    Each visit is remembered on its day. A memory in `every` is used so many days after it was made, and again after as
    many; all others are only injected, every day. The job runs at the end of each day. What the users had here before
    is forgotten first.
    """
    visits = [visit for user in USERS for visit in datasets.load(user[:2]).of(user)]
    vectors = default_embedder().encode([visit.summary for visit in visits])
    records = [
        EpisodicRecord(visit.user_id, visit.session_id, visit.summary, vector, visit.started_at)
        for visit, vector in zip(visits, vectors, strict=True)
    ]
    for user in USERS:
        await store.forget(user)
    uses = {MemoryId(visit.user_id, visit.session_id): 0 for visit in visits}
    rows = []
    clock.set(FIRST_DAY.replace(hour=23))
    while clock() < LAST_DAY:
        for visit, record in zip(visits, records, strict=True):
            if visit.started_at.date() == clock().date():
                await store.remember(record)
            elif visit.started_at < clock():
                await _use(store, clock, visit, every, uses)
        for one in (await store.fade()).archived:
            born = next(visit.started_at for visit in visits if visit.session_id == one.session_id)
            age = (clock().date() - born.date()).days
            rows.append((f"{clock():%d %b}", one.user_id, one.session_id, age, uses[one]))
        clock.advance(days=1)
    return pd.DataFrame(rows, columns=["night", "user", "visit", "age_days", "uses"])


async def half_year_in_postgres(url: str, every: Mapping[MemoryId, int]) -> pd.DataFrame:
    """The same half year in two tables of its own, the memories and their archive, which are dropped at the end."""
    clock, table = ManualClock(), f"lesson_09_{uuid4().hex[:12]}"
    store = await PgVectorEpisodicStore.connect(url, default_embedder().dimensions, table=table, clock=clock)
    try:
        return await half_year(store, clock, every)
    finally:
        await store.close()
        with psycopg.connect(url, connect_timeout=10) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {table}, {table}_archive")


async def _use(
    store: FadingStore, clock: ManualClock, visit: Session, every: Mapping[MemoryId, int], uses: dict[MemoryId, int]
) -> None:
    one = MemoryId(visit.user_id, visit.session_id)
    age = (clock().date() - visit.started_at.date()).days
    helped = one in every and age % every[one] == 0
    uses[one] += await store.use(*one, injected=not helped)


async def first(store: FadingStore, user: str) -> Recollection:
    """What the store recalls first for this user's question in `TOLD_ONCE`."""
    vector = default_embedder().encode([TOLD_ONCE[user]])[0]
    return (await store.recall(vector, 1, user_id=user))[0]
