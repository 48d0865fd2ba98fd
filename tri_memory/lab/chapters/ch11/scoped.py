"""Two users' records in memory and in Postgres, and five questions to them."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

from tri_memory import InMemoryEpisodicStore, ManualClock
from tri_memory.contracts import EpisodicRecord
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.entity.records import UserMemoryStore
from tri_memory.entity.structured import Recalled, structured_recall
from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.chapters.ch11.tables import drop
from tri_memory.lab.datasets import FIRST_DAY

NOW = FIRST_DAY + timedelta(days=60)
TEXTS = {  # (user, case): days ago, what was agreed
    ("ann", "BX-2207"): (2, "Return BX-2207: the boots, a seam is open. A refund of 37 euros."),
    ("ann", "BX-2270"): (1, "Return BX-2270: the tent, too late. A refund of 61 euros."),
    ("ann", "BX-1999"): (30, "Return BX-1999: the stove, a part is missing. Sent on."),
    ("ben", "BX-3001"): (3, "退货单BX-3001：背包，拉链卡住。说好退款88元。"),
}
ASKED = (
    ("What about BX-2207?", "ann"),
    ("订单号BX2207退了吗？", "ann"),
    ("And order BX-1999?", "ann"),
    ("What about BX-2207?", "ben"),
    ("The boots again, like last time?", "ann"),
)

Asked = list[tuple[str, str, Recalled]]


async def five_questions(url: str) -> dict[str, Asked]:
    """By engine, (question, user, what was recalled). The table in Postgres is this call's own and goes with it."""
    table, clock = f"lesson_{uuid4().hex}", ManualClock(NOW)
    try:
        async with await PostgresUserMemoryStore.connect(url, table=table, clock=clock) as postgres:
            stores: dict[str, UserMemoryStore] = {
                "memory": InMemoryUserMemoryStore(clock=clock),
                "Postgres": postgres,
            }
            return {engine: await _asked(store) for engine, store in stores.items()}
    finally:
        drop(url, table)


async def ask(question: str, user: str) -> Recalled:
    """One question to the records in memory."""
    memories = InMemoryUserMemoryStore(clock=ManualClock(NOW))
    return await structured_recall(question, user_id=user, memories=memories, clock=ManualClock(NOW))


def as_said(asked: Asked) -> list[tuple[str, str, list[tuple[str, datetime]], list[str]]]:
    """What can be compared between engines."""
    return [
        (
            one.how,
            one.reason,
            [(each.entity_id, each.updated_at) for each in one.memories],
            [each.summary for each in one.episodes],
        )
        for _, _, one in asked
    ]


async def _asked(store: UserMemoryStore) -> Asked:
    episodes, embedder = InMemoryEpisodicStore(), usual()
    vectors = embedder.encode([text for _, text in TEXTS.values()])
    for ((user, case), (days, text)), vector in zip(TEXTS.items(), vectors, strict=True):
        at, session = NOW - timedelta(days=days), f"{user}-{case}"
        await store.put(user, "case", case, {"agreed": text, "session_id": session}, began_at=at)
        await episodes.remember(EpisodicRecord(user, session, text, vector, at))
    given = {"memories": store, "episodes": episodes, "embedder": embedder, "clock": ManualClock(NOW)}
    return [(question, user, await structured_recall(question, user_id=user, **given)) for question, user in ASKED]
