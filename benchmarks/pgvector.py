"""What a recall from Postgres costs beside the same question as bare SQL on the same connection settings; how many of
the true ten nearest it finds; how long a fresh server takes until its first answer.

Ten users share each table evenly. Vectors lie around 500 topics, as those of real texts do. The goal is held against
the bare SQL that finds as much (recall@10 of at least 0.98); a faster one that misses more has no goal. No peer stands
beside: langchain-postgres takes an older pgvector than this package, and the stores of LangGraph, LlamaIndex and mem0
embed the texts themselves.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg import register_vector_async

from benchmarks.timing import Row, paired
from tri_memory import PgVectorEpisodicStore, engines
from tri_memory.episodic.pgvector_schema import SETTINGS

Vector = NDArray[np.float32]
Ask = Callable[[Vector, str, int], Coroutine[Any, Any, list[tuple[Any, ...]]]]

DIMENSIONS, USERS, TOPICS, K = 512, 10, 500, 3
QUERIES = 40
BARE = (
    "SELECT session_id, summary, 1 - (embedding <=> %s), created_at FROM {table} "
    "WHERE user_id = %s ORDER BY embedding <=> %s LIMIT %s"
)
EXACT = (
    "SELECT session_id, summary, 1 - (embedding <=> %s), created_at FROM {table} "
    "WHERE user_id = %s ORDER BY round(1e6 * (embedding <=> %s)), seq LIMIT %s"
)


def rows() -> Iterator[Row]:
    started = time.perf_counter()
    with engines.postgres() as server, asyncio.Runner() as runner:
        runner.run(_first_answer(server.url))
        first_s = time.perf_counter() - started
        print(f"engines.postgres() ({server.how}) to its first recall: {first_s:.1f} s")
        for count in (1_000, 100_000):
            table = f"bench_{uuid4().hex}"
            try:
                yield from _recall(runner, server.url, table, count)
            finally:
                with psycopg.connect(server.url, autocommit=True) as connection:
                    connection.execute(f"DROP TABLE IF EXISTS {table}, {table}_archive")


async def _first_answer(url: str) -> None:
    async with await PgVectorEpisodicStore.connect(url, DIMENSIONS, table=f"first_{uuid4().hex}") as store:
        await store.recall(np.ones(DIMENSIONS), user_id="u0")


def _recall(runner: asyncio.Runner, url: str, table: str, count: int) -> Iterator[Row]:
    rng = np.random.default_rng(5)
    topics = rng.standard_normal((TOPICS, DIMENSIONS), dtype=np.float32)
    matrix = _near(rng, topics, count)
    queries = _near(rng, topics, QUERIES)
    store = runner.run(_filled(url, table, matrix))
    users = [f"u{i % USERS}" for i in range(QUERIES)]
    truth = _nearest(matrix, queries)

    def recall_at_10(ask: Ask) -> float:
        found = [runner.run(ask(query, user, 10)) for query, user in zip(queries, users, strict=True)]
        return statistics.mean(
            len({row[0] for row in rows} & best) / 10 for rows, best in zip(found, truth, strict=True)
        )

    async def ours(query: Vector, user: str, k: int) -> list[tuple[Any, ...]]:
        return [(one.session_id, one.score) for one in await store.recall(query, k, user_id=user)]

    found = recall_at_10(ours)
    work = f"top-{K} of {count // USERS:,} of {count:,} rows, Postgres (recall@10 {found:.3f}, goal 0.98)"
    connection = runner.run(_connection(url))
    for name, sql in (("bare SQL, exact", EXACT), ("bare SQL, the planner's way", BARE)):
        statement = sql.format(table=table)

        async def bare(query: Vector, user: str, k: int, statement: str = statement) -> list[tuple[Any, ...]]:
            vector = HalfVector(query)
            return list(await (await connection.execute(statement, [vector, user, vector, k])).fetchall())

        share = recall_at_10(bare)
        yield paired(
            work,
            _in_turn(runner, queries, users, ours),
            f"{name} (recall@10 {share:.3f})",
            _in_turn(runner, queries, users, bare),
            units=QUERIES,
            rounds=9,
            goal=0.0 if found < 0.98 else 1.3 if share >= 0.98 else float("inf"),
        )
    runner.run(connection.close())
    runner.run(store.close())


def _in_turn(runner: asyncio.Runner, queries: Vector, users: list[str], ask: Ask) -> Callable[[], object]:
    async def go() -> None:
        for query, user in zip(queries, users, strict=True):
            assert len(await ask(query, user, K)) == K

    return lambda: runner.run(go())


def _near(rng: np.random.Generator, topics: Vector, count: int) -> Vector:
    rows = topics[rng.integers(len(topics), size=count)]
    rows = rows + rng.standard_normal(rows.shape, dtype=np.float32)
    unit: Vector = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


async def _filled(url: str, table: str, matrix: Vector) -> PgVectorEpisodicStore:
    """Rows first and the index afterwards, as one loads much at once: row i belongs to user i modulo 10."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        async with await PgVectorEpisodicStore.connect(url, DIMENSIONS, table=table):
            pass
        await register_vector_async(connection)
        await connection.execute(f"DROP INDEX {table}_nearest")
        copy = f"COPY {table} (user_id, session_id, summary, embedding, created_at) FROM STDIN WITH (FORMAT BINARY)"
        async with connection.cursor() as cursor, cursor.copy(copy) as target:
            target.set_types(["text", "text", "text", "halfvec", "timestamptz"])
            now = datetime(2026, 3, 1, tzinfo=UTC)
            for i, row in enumerate(matrix):
                await target.write_row([f"u{i % USERS}", f"s{i}", f"summary {i}", HalfVector(row), now])
        await connection.execute("SET maintenance_work_mem = '1GB'")
        await connection.execute(f"CREATE INDEX {table}_nearest ON {table} USING hnsw (embedding halfvec_cosine_ops)")
        await connection.execute(f"VACUUM ANALYZE {table}")
    return await PgVectorEpisodicStore.connect(url, DIMENSIONS, table=table)


async def _connection(url: str) -> psycopg.AsyncConnection[Any]:
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    await register_vector_async(connection)
    for name, value in SETTINGS.items():
        await connection.execute("SELECT set_config(%s, %s, false)", [name, value])
    return connection


def _nearest(matrix: Vector, queries: Vector) -> list[set[str]]:
    """Of each query's user, the ten nearest sessions, compared one by one."""
    truth = []
    for i, query in enumerate(queries):
        own = np.arange(i % USERS, len(matrix), USERS)
        truth.append({f"s{row}" for row in own[np.argsort(-(matrix[own] @ query), kind="stable")[:10]]})
    return truth
