"""One hybrid recall in memory and in Postgres, over the same memories."""

from __future__ import annotations

from uuid import uuid4

import psycopg
from psycopg import sql

from tri_memory import InMemoryEpisodicStore, PgVectorEpisodicStore
from tri_memory.embedding import Embedder
from tri_memory.episodic.hybrid import hybrid_recall
from tri_memory.lab.chapters.ch10.memories import fill
from tri_memory.recall.gate import Gate, Hit


async def on_both(
    url: str, user: str, question: str, embedder: Embedder, gate: Gate, k: int = 3
) -> dict[str, list[Hit]]:
    """By engine, what `hybrid_recall` gives. The table in Postgres is this call's own and goes with it."""
    memory = await fill(InMemoryEpisodicStore(), user, embedder)
    table = f"lesson_{uuid4().hex}"
    try:
        async with await PgVectorEpisodicStore.connect(url, embedder.dimensions, table=table) as postgres:
            await fill(postgres, user, embedder)
            return {
                engine: await hybrid_recall(question, user_id=user, episodes=store, embedder=embedder, gate=gate, k=k)
                for engine, store in (("memory", memory), ("Postgres", postgres))
            }
    finally:
        _drop(url, table)


def _drop(url: str, table: str) -> None:
    """The table and those that the store keeps beside it, whose names begin with its own."""
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        found = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND starts_with(tablename, %s)",
            [table],
        ).fetchall()
        for (name,) in found:
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name)))
