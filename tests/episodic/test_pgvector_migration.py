"""A table from before halfvec becomes one, by itself, whole or not at all; and what a server may lack is said."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

if os.environ.get("STRICT") != "1":
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]' pgvector")

import psycopg
from psycopg import sql

from tri_memory.contracts import EpisodicRecord, Recollection
from tri_memory.episodic.pgvector import PgVectorEpisodicStore
from tri_memory.episodic.pgvector_schema import EpisodeSchema

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONNECT = """
import asyncio, sys
from tri_memory.episodic.pgvector import PgVectorEpisodicStore

async def main():
    async with await PgVectorEpisodicStore.connect(sys.argv[1], 3, table=sys.argv[2]) as store:
        print(len(await store.recall([1, 0, 0], 1_000, user_id="ann")))

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""


class Database:
    """The server, as somebody sees it who doesn't use our stores, and one table's name."""

    def __init__(self, url: str) -> None:
        self.url, self.table = url, f"episodes_{secrets.token_hex(4)}"

    async def do(self, *statements: str) -> list[tuple]:
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                done = await connection.execute(sql.SQL(statement).format(table=sql.SQL(self.table)))
            return await done.fetchall() if done.description else []

    async def old_table(self, rows: str = "", columns: str = "embedding vector(3) NOT NULL") -> None:
        await self.do(
            "CREATE EXTENSION IF NOT EXISTS vector",
            "CREATE TABLE {table} (user_id text NOT NULL, session_id text NOT NULL, summary text NOT NULL, "
            f"created_at timestamptz NOT NULL DEFAULT now(), {columns}, PRIMARY KEY (user_id, session_id))",
            *([f"INSERT INTO {{table}} (user_id, session_id, summary, created_at, embedding) {rows}"] if rows else []),
        )

    async def type(self) -> str:
        [(kind,)] = await self.do(
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = '{table}'::regclass AND attname = 'embedding'"
        )
        return kind

    async def indexes(self) -> dict[str, int]:
        return dict(await self.do("SELECT indexdef, indexrelid::int FROM pg_indexes JOIN pg_index ON "
                                  "indexrelid = indexname::regclass WHERE tablename = '{table}'"))  # fmt: skip

    def store(self, dimensions: int = 3) -> PgVectorEpisodicStore:
        return PgVectorEpisodicStore(self.url, dimensions, table=self.table)


@pytest.fixture
def database(embedded_postgres) -> Database:
    return Database(embedded_postgres)


THREE = (
    "VALUES ('ann', 'a', 'First.', '2026-03-01 12:00Z', '[2,0,0]'), "
    "('ann', 'b', 'Second.', '2026-03-01 13:00Z', '[0,300000,0]'), "
    "('bob', 'a', 'His.', '2026-03-01 14:00Z', '[1e-6,1e-6,0]')"
)


async def test_an_old_table_keeps_its_rows_and_takes_half_the_room(database):
    await database.old_table(THREE)
    await database.do(
        "CREATE INDEX ON {table} USING hnsw (embedding vector_cosine_ops)",
        "CREATE INDEX ON {table} USING ivfflat (embedding vector_l2_ops) WITH (lists = 1)",
        "CREATE INDEX ON {table} ((vector_norm(embedding)))",
        "CREATE INDEX ON {table} (created_at)",
    )
    async with database.store() as store:
        assert await store.recall([3, 0, 0], user_id="ann") == [
            Recollection("a", "First.", 1.0, NOON),
            Recollection("b", "Second.", 0.0, NOON + timedelta(hours=1)),
        ]
        assert [(one.summary, one.score) for one in await store.recall([1, 1, 0], user_id="bob")] == [("His.", 1.0)]
        await store.remember(EpisodicRecord("ann", "a", "Again.", [0, 0, 1], NOON))
        assert await store.forget("ann") == 2
    assert await database.type() == "halfvec(3)"
    left = " ".join(await database.indexes())
    assert "hnsw (embedding halfvec_cosine_ops)" in left
    assert "(created_at)" in left
    assert "vector_l2_ops" not in left


async def test_migrating_happens_once(database):
    await database.old_table(THREE)
    async with database.store() as store:
        await store.forget("nobody")
    before = await database.indexes()
    async with database.store() as store:
        await store.forget("nobody")
    assert await database.indexes() == before


async def test_rows_without_a_number_are_numbered_by_time_and_new_ones_come_after(database):
    await database.old_table(
        "SELECT 'ann', 's' || n, 'Same.', '2026-03-01'::timestamptz - n * interval '1 hour', '[1,0,0]' "
        "FROM generate_series(1, 20) AS n"
    )
    async with database.store() as store:
        await store.remember(EpisodicRecord("ann", "new", "New.", [1, 0, 0], NOON))
        found = await store.recall([1, 0, 0], 21, user_id="ann")
    assert [one.session_id for one in found] == [*(f"s{n}" for n in range(20, 0, -1)), "new"]


async def test_rows_that_have_a_number_keep_it(database):
    await database.old_table(
        "SELECT 'ann', 's' || n, 'Same.', now() - n * interval '1 hour', '[1,0,0]' FROM generate_series(1, 5) AS n",
        "embedding vector(3), seq bigint GENERATED ALWAYS AS IDENTITY",
    )
    async with database.store() as store:
        found = await store.recall([1, 0, 0], 5, user_id="ann")
    assert [one.session_id for one in found] == ["s1", "s2", "s3", "s4", "s5"]


async def test_a_row_whose_vector_has_no_direction_is_kept_and_told_of_and_can_be_mended(database):
    await database.old_table(
        "VALUES ('ann', 'zero', 'Zeros.', now(), '[0,0,0]'), ('ann', 'null', 'None.', now(), NULL), "
        "('ann', 'good', 'Good.', now(), '[1,0,0]')",
        "embedding vector(3)",
    )
    with pytest.warns(UserWarning, match=f"2 rows of the old table {database.table} have a vector of zeros or none"):
        store = await PgVectorEpisodicStore.connect(database.url, 3, table=database.table)
    async with store:
        assert [one.session_id for one in await store.recall([1, 0, 0], 10, user_id="ann")] == ["good"]
        await store.remember(EpisodicRecord("ann", "zero", "Mended.", [0, 1, 0], NOON))
        assert [one.summary for one in await store.recall([1, 0, 0], 10, user_id="ann")] == ["Good.", "Mended."]
        assert await store.forget("ann") == 3


async def test_an_index_for_another_distance_does_not_pass_for_ours(database):
    await database.old_table(
        THREE.replace("300000", "3"), "embedding halfvec(3), seq bigint GENERATED ALWAYS AS IDENTITY"
    )
    await database.do("CREATE INDEX ON {table} USING hnsw (embedding halfvec_l2_ops)")
    async with database.store() as store:
        assert len(await store.recall([1, 0, 0], user_id="ann")) == 2
    assert "hnsw (embedding halfvec_cosine_ops)" in " ".join(await database.indexes())


async def test_times_without_a_zone_are_read_as_utc(database):
    await database.old_table(THREE)
    await database.do("SET timezone = 'UTC'", "ALTER TABLE {table} ALTER COLUMN created_at TYPE timestamp")
    await database.do("ALTER TABLE {table} ALTER COLUMN created_at TYPE timestamp USING '2026-03-01 12:00'::timestamp")
    async with database.store() as store:
        assert [one.created_at for one in await store.recall([1, 0, 0], user_id="bob")] == [NOON]


async def test_a_vector_column_of_no_stated_size_is_migrated_where_all_have_ours(database):
    await database.old_table(THREE, "embedding vector")
    async with database.store() as store:
        assert len(await store.recall([1, 0, 0], user_id="ann")) == 2


@pytest.mark.parametrize("column", ["embedding vector(3)", "embedding vector"])
async def test_an_old_table_for_other_dimensions_is_refused_and_left_alone(database, column):
    await database.old_table(THREE, column)
    before = await database.type()
    with pytest.raises(ValueError, match=f"{database.table} holds embeddings of 3 dimensions, and this store is for 4"):
        await database.store(4).recall([1, 0, 0, 0], user_id="ann")
    assert await database.type() == before


async def test_a_session_that_is_there_twice_is_named_and_the_table_left_alone(database):
    await database.old_table()
    await database.do(
        "ALTER TABLE {table} DROP CONSTRAINT {table}_pkey",
        "INSERT INTO {table} VALUES ('ann', 'a', 'One.', now(), '[1,0,0]'), ('ann', 'a', 'Two.', now(), '[1,0,0]')",
    )
    with pytest.raises(ValueError, match=r"has a session twice, and was left as it was: .*\(ann, a\)"):
        await database.store().forget("ann")
    assert await database.type() == "vector(3)"
    assert await database.do("SELECT count(*) FROM {table}") == [(2,)]


async def test_a_table_of_something_else_is_named_and_left_alone(database):
    await database.do("CREATE TABLE {table} (user_id text, embedding text)")
    with pytest.raises(ValueError, match=f"the table {database.table} exists and is not one of episodes"):
        await database.store().forget("ann")
    assert await database.type() == "text"


async def test_a_crash_in_the_middle_leaves_the_old_table(database, monkeypatch):
    await database.old_table(THREE)
    await database.do("CREATE INDEX ON {table} USING hnsw (embedding vector_cosine_ops)")
    indexes = await database.indexes()
    real = EpisodeSchema._index

    async def crash(self, connection):
        await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    monkeypatch.setattr(EpisodeSchema, "_index", crash)
    with pytest.raises(ConnectionError, match="failed at the first call: terminating connection"):
        await database.store().forget("ann")
    assert await database.type() == "vector(3)"
    assert await database.indexes() == indexes
    assert await database.do("SELECT count(*), count(embedding) FROM {table}") == [(3, 3)]
    monkeypatch.setattr(EpisodeSchema, "_index", real)
    async with database.store() as store:
        assert len(await store.recall([1, 0, 0], user_id="ann")) == 2


@pytest.mark.parametrize("old", [True, False], ids=["an old table", "no table"])
def test_two_processes_that_start_at_once_make_or_migrate_one_table(database, old):
    if old:
        rows = "SELECT 'ann', 's' || n, 'S.', now(), ARRAY[n, 1, 0]::vector FROM generate_series(1, 500) AS n"
        asyncio.run(database.old_table(rows))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CONNECT, database.url, database.table],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60) for process in processes]
    assert answers == [("500\n" if old else "0\n", "")] * 3
    assert asyncio.run(database.type()) == "halfvec(3)"
    assert sum("hnsw" in index for index in asyncio.run(database.indexes())) == 1


# What a server may lack


class OtherDatabase:
    """A new database without the extension, and a user who may do little in it."""

    def __init__(self, url: str) -> None:
        self.admin, self.name = url, f"other_{secrets.token_hex(4)}"
        self.url = url.rpartition("/")[0] + f"/{self.name}"

    async def __aenter__(self) -> OtherDatabase:
        async with await psycopg.AsyncConnection.connect(self.admin, autocommit=True) as connection:
            await connection.execute(f"CREATE DATABASE {self.name}")
            await connection.execute(f"CREATE ROLE {self.name} LOGIN PASSWORD 'weak'")
        return self

    async def __aexit__(self, *_: object) -> None:
        async with await psycopg.AsyncConnection.connect(self.admin, autocommit=True) as connection:
            await connection.execute(f"DROP DATABASE {self.name} WITH (FORCE)")
            await connection.execute(f"DROP ROLE {self.name}")

    def as_weak_user(self) -> str:
        address = self.url.rpartition("@")[2]
        return f"postgresql://{self.name}:weak@{address}"


async def test_a_user_who_may_not_create_the_extension_is_told_who_may(embedded_postgres):
    async with OtherDatabase(embedded_postgres) as database:
        with pytest.raises(RuntimeError, match="have a superuser run CREATE EXTENSION vector"):
            await PgVectorEpisodicStore.connect(database.as_weak_user(), 3)


async def test_an_old_pgvector_is_told_what_is_needed(embedded_postgres):
    async with OtherDatabase(embedded_postgres) as database:
        async with await psycopg.AsyncConnection.connect(database.url, autocommit=True) as connection:
            await connection.execute("CREATE EXTENSION vector")
            await connection.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
        with pytest.raises(RuntimeError, match=r"pgvector 0\.7\.4 is too old, 0\.8 is needed: ALTER EXTENSION"):
            await PgVectorEpisodicStore.connect(database.url, 3)


async def test_a_user_who_may_only_read_and_write_finds_what_an_administrator_made(embedded_postgres):
    async with OtherDatabase(embedded_postgres) as database:
        async with await PgVectorEpisodicStore.connect(database.url, 3):
            pass
        async with await psycopg.AsyncConnection.connect(database.url, autocommit=True) as connection:
            both = "episodes, episodes_archive"
            await connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {both} TO {database.name}")
        async with PgVectorEpisodicStore(database.as_weak_user(), 3) as store:
            await store.remember(EpisodicRecord("ann", "a", "First.", np.ones(3), NOON))
            assert len(await store.recall(np.ones(3), user_id="ann")) == 1
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert await store.forget("ann") == 1
