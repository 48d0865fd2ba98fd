"""What a recall from Postgres costs beside the same question as bare SQL on the same connection settings; how many of
the true ten nearest it finds; how long a fresh server takes until its first answer.

Ten users share each table evenly. Vectors lie around 500 topics, as those of real texts do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
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
                    connection.execute(f"DROP TABLE IF EXISTS {table}")


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
    found = [runner.run(store.recall(q, 10, user_id=u)) for q, u in zip(queries, users, strict=True)]
    ours = _in_turn(runner, queries, users, lambda query, user: store.recall(query, K, user_id=user))
    share = _recall_at_10(matrix, queries, found)
    work = f"top-{K} of {count // USERS:,} of {count:,} rows, Postgres (recall@10 {share:.3f})"
    connection = runner.run(_connection(url))
    for name, sql in (("bare SQL, the same way", EXACT), ("bare SQL, the planner's way", BARE)):
        statement = sql.format(table=table)

        async def bare(query: NDArray[np.float32], user: str, statement: str = statement) -> list[Any]:
            vector = HalfVector(query)
            cursor = await connection.execute(statement, [vector, user, vector, K])
            return list(await cursor.fetchall())

        theirs = _in_turn(runner, queries, users, bare)
        yield paired(work, ours, name, theirs, units=QUERIES, rounds=9, goal=1.3)
    runner.run(connection.close())
    runner.run(store.close())


def _in_turn(
    runner: asyncio.Runner, queries: NDArray[np.float32], users: list[str], ask: Callable[..., Any]
) -> Callable[[], object]:
    async def go() -> None:
        for query, user in zip(queries, users, strict=True):
            assert len(await ask(query, user)) == K

    return lambda: runner.run(go())


def _near(rng: np.random.Generator, topics: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    rows = topics[rng.integers(len(topics), size=count)]
    rows = rows + rng.standard_normal(rows.shape, dtype=np.float32)
    unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


async def _filled(url: str, table: str, matrix: NDArray[np.float32]) -> PgVectorEpisodicStore:
    """Rows first and the index afterwards, as one loads much at once: row i belongs to user i modulo 10."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        async with await PgVectorEpisodicStore.connect(url, DIMENSIONS, table=table):
            pass
        await register_vector_async(connection)
        await connection.execute(f"DROP INDEX {table}_nearest")
        copy = f"COPY {table} (user_id, session_id, summary, embedding, created_at) FROM STDIN WITH (FORMAT BINARY)"
        async with connection.cursor() as cursor, cursor.copy(copy) as target:
            target.set_types(["text", "text", "text", "halfvec", "timestamptz"])
            now = np.datetime64("2026-03-01").astype("datetime64[us]").item()
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


def _recall_at_10(matrix: NDArray[np.float32], queries: NDArray[np.float32], found: list[list[Any]]) -> float:
    hits = 0
    for i, (query, got) in enumerate(zip(queries, found, strict=True)):
        own = np.arange(i % USERS, len(matrix), USERS)
        best = own[np.argsort(-(matrix[own] @ query), kind="stable")[:10]]
        hits += len({f"s{row}" for row in best} & {one.session_id for one in got})
    return hits / (10 * len(queries))
