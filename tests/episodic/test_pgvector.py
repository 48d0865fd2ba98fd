"""What only the Postgres engine of episodes can get wrong: plans, recall, ties, rows, refusals."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if os.environ.get("STRICT") != "1":
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]' pgvector")

import psycopg

from tri_memory.contracts import EpisodicRecord, EpisodicStore, Recollection
from tri_memory.episodic import pgvector
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.episodic.pgvector import PgVectorEpisodicStore
from tri_memory.episodic.pgvector_schema import SETTINGS, HalfVector

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOWHERE = "postgresql://localhost/shop"


def new_table() -> str:
    return f"episodes_{secrets.token_hex(4)}"


def record(user_id="ann", session_id="s1", embedding=(1.0, 0.0), summary="She asked for a refund.", created_at=NOON):
    return EpisodicRecord(user_id, session_id, summary, embedding, created_at)


@pytest.fixture
async def store(embedded_postgres):
    async with await PgVectorEpisodicStore.connect(embedded_postgres, 2, table=new_table()) as store:
        yield store


async def load(store: PgVectorEpisodicStore, users: list[str], vectors: np.ndarray) -> None:
    """Row i: session `s{i}` of `users[i]`, written as `remember` would, all at once."""

    async def copy(connection):
        columns = "(user_id, session_id, summary, embedding, created_at)"
        async with (
            connection.cursor() as cursor,
            cursor.copy(f"COPY {store._table} {columns} FROM STDIN (FORMAT BINARY)") as rows,
        ):
            rows.set_types(["text", "text", "text", "halfvec", "timestamptz"])
            for number, (user, vector) in enumerate(zip(users, vectors, strict=True)):
                await rows.write_row((user, f"s{number}", "A refund.", HalfVector(vector), NOON))
        await connection.execute(f"ANALYZE {store._table}")

    await store._pool.run(copy)


async def ways(store: PgVectorEpisodicStore, query: np.ndarray, user_id: str, k: int = 10) -> tuple[bool, bool]:
    """Whether this recall searches the HNSW index, and whether it compares the user's rows one by one."""

    async def explain(connection):
        values = store._values(query, k, user_id)
        rows = await connection.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + store._recall, values)
        [(plan,)] = await rows.fetchall()
        return list(nodes(plan[0]["Plan"]))

    found = await store._pool.run(explain)
    searched = [node for node in found if node.get("Index Name") == f"{store._table}_nearest"]
    compared = [child for node in found if "(NOT" in node.get("One-Time Filter", "") for child in node["Plans"]]
    compared = [node for node in compared if node.get("Parent Relationship") == "Outer"]
    assert len(compared) == 1
    return any(node["Actual Loops"] for node in searched), bool(compared[0]["Actual Loops"])


def nodes(plan: dict) -> Iterator[dict]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def units(count: int, dimensions: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def clustered(count: int, dimensions: int, seed: int) -> np.ndarray:
    """As embeddings of real texts are: many near each other."""
    rng = np.random.default_rng(seed)
    vectors = units(count // 50, dimensions, seed)[rng.integers(count // 50, size=count)]
    vectors = vectors + 0.5 * rng.standard_normal((count, dimensions)).astype(np.float32) / dimensions**0.5
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


async def recall_at_10(store, vectors, queries, user_id: str, mine: np.ndarray) -> float:
    hits = 0
    for query in queries:
        found = await store.recall(query, 10, user_id=user_id)
        assert len(found) == min(10, len(mine))
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        nearest = mine[np.argsort(-(vectors[mine] @ query), kind="stable")[:10]]
        hits += len({f"s{row}" for row in nearest} & {one.session_id for one in found})
    return hits / sum(min(10, len(mine)) for _ in queries)


def test_it_keeps_the_contract():
    assert isinstance(PgVectorEpisodicStore(NOWHERE), EpisodicStore)


async def test_an_exact_match_scores_one_and_the_opposite_minus_one(embedded_postgres):
    vectors = units(50, 512, seed=1)
    async with await PgVectorEpisodicStore.connect(embedded_postgres, table=new_table()) as store:
        await load(store, ["ann"] * 50, vectors)
        for row, vector in enumerate(vectors):
            best = (await store.recall(vector * 7, 1, user_id="ann"))[0]
            assert (best.session_id, best.score) == (f"s{row}", 1.0)
            assert (await store.recall(-vector, 50, user_id="ann"))[-1].score == -1.0


async def test_the_same_session_again_is_the_same_row(store, embedded_postgres):
    await store.remember(record(session_id="a"))
    await store.remember(record(session_id="b"))
    await store.remember(record(session_id="a", summary="Refunded.", created_at=NOON + timedelta(days=1)))
    assert await store.recall([1, 0], user_id="ann") == [
        Recollection("a", "Refunded.", 1.0, NOON),
        Recollection("b", "She asked for a refund.", 1.0, NOON),
    ]
    await store.remember(record(session_id="a", embedding=[0, 1]))
    assert [found.session_id for found in await store.recall([1, 0], user_id="ann")] == ["b", "a"]
    async with await psycopg.AsyncConnection.connect(embedded_postgres) as connection:
        rows = await (await connection.execute(f"SELECT seq, session_id FROM {store._table} ORDER BY seq")).fetchall()
    assert [session_id for _, session_id in rows] == ["a", "b"]


async def test_a_k_beyond_any_number_of_rows_gives_all_of_them(store):
    await store.remember(record())
    assert len(await store.recall([1, 0], 10**30, user_id="ann")) == 1


async def test_twenty_writers_of_one_session_leave_one_row(store):
    await asyncio.gather(*(store.remember(record(summary=f"Version {n}.")) for n in range(20)))
    assert await store.forget("ann") == 1


async def test_times_come_back_in_utc_whatever_zone_they_had(store):
    zones = [timezone(timedelta(hours=8)), timezone(timedelta(hours=-11)), UTC]
    times = [datetime(2026, 3, 1, 20, 0, 0, 123456, tzinfo=zone) for zone in zones]
    times += [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
    for number, when in enumerate(times):
        await store.remember(record(session_id=f"s{number}", created_at=when))
    found = await store.recall([1, 0], 10, user_id="ann")
    assert [one.created_at for one in found] == times
    assert all(one.created_at.tzinfo is UTC for one in found)


@pytest.mark.parametrize("dimensions", [1, 512, 4_000])
async def test_sizes_up_to_4000_are_stored_beside_a_long_summary_and_indexed(embedded_postgres, dimensions):
    vectors = units(3, dimensions, seed=2)
    summary = "".join(chr(0x4E00 + n % 8_000) for n in range(2_000))
    async with await PgVectorEpisodicStore.connect(embedded_postgres, dimensions, table=new_table()) as store:
        for number, vector in enumerate(vectors):
            await store.remember(record(session_id=f"s{number}", embedding=vector, summary=summary))
        best = (await store.recall(vectors[0], 3, user_id="ann"))[0]
        assert (best.session_id, best.summary, best.score) == ("s0", summary, 1.0)


def test_more_dimensions_than_the_index_takes_are_refused_naming_both():
    with pytest.raises(ValueError, match=r"at most 4,000 dimensions; got 4,001"):
        PgVectorEpisodicStore(NOWHERE, 4_001)


@pytest.mark.parametrize("dimensions", [0, -1, 2.5, True, None, "512"])
def test_what_is_no_number_of_dimensions_is_refused(dimensions):
    with pytest.raises(ValueError, match="dimensions must be a whole number of at least 1"):
        PgVectorEpisodicStore(NOWHERE, dimensions)


async def test_a_table_for_other_dimensions_is_refused_naming_both(store, embedded_postgres):
    with pytest.raises(ValueError, match=f"{store._table} holds embeddings of 2 dimensions, and this store is for 3"):
        await PgVectorEpisodicStore.connect(embedded_postgres, 3, table=store._table)
    with pytest.raises(ValueError, match="2 dimensions, and this store is for 3"):
        await PgVectorEpisodicStore(embedded_postgres, 3, table=store._table).forget("ann")


@pytest.mark.parametrize(
    ("embedding", "message"),
    [
        ([0, 0], "all zeros"),
        ([1, float("nan")], "finite"),
        (np.ones(1024), "1024 dimensions, but 2"),
        ([[1, 0]], "shape"),
        ("vector", "numbers"),
    ],
)
async def test_a_vector_is_refused_before_any_server_is_asked(embedding, message):
    store = PgVectorEpisodicStore("postgresql://127.0.0.1:1/nowhere", 2)
    with pytest.raises(ValueError, match=message):
        await store.remember(record(embedding=embedding))
    if message == "all zeros":
        assert await store.recall(embedding, user_id="ann") == []
    else:
        with pytest.raises(ValueError, match=message):
            await store.recall(embedding, user_id="ann")


@pytest.mark.parametrize("server", ["embedded_postgres", "container_postgres"])
async def test_after_its_backends_were_killed_the_next_recall_and_the_next_write_work(server, request):
    name = f"test_{secrets.token_hex(4)}"
    url = f"{request.getfixturevalue(server)}?application_name={name}"

    def kill() -> int:
        with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
            query = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s"
            return len(connection.execute(query, [name]).fetchall())

    async with await PgVectorEpisodicStore.connect(url, 2, table=new_table(), pool_size=3) as store:
        await asyncio.gather(*(store.remember(record(session_id=f"s{n}")) for n in range(50)))
        assert kill()
        assert len(await store.recall([1, 0], 50, user_id="ann")) == 50
        assert kill()
        await store.remember(record(session_id="after"))
        assert kill()
        assert await store.forget("ann") == 51


# Which way is taken, and what it finds


@pytest.mark.parametrize("server", ["embedded_postgres", "container_postgres"])
async def test_an_index_built_on_an_empty_table_finds_what_came_later(server, request, monkeypatch):
    """Through the index: with the number of rows that is compared one by one set to none."""
    monkeypatch.setattr(pgvector, "MOST_EXACT", 0)
    vectors = clustered(5_000, 64, seed=3)
    async with await PgVectorEpisodicStore.connect(request.getfixturevalue(server), 64, table=new_table()) as store:
        await load(store, ["ann"] * 5_000, vectors)
        queries = clustered(5_000, 64, seed=3)[::100] + 0.02 * units(50, 64, seed=4)
        assert await ways(store, queries[0], "ann") == (True, False)
        assert await recall_at_10(store, vectors, queries, "ann", np.arange(5_000)) >= 0.98


async def test_a_user_with_few_rows_is_compared_one_by_one_and_exactly(embedded_postgres):
    vectors = units(5_000, 64, seed=5)  # no two near each other, which no index handles well
    users = np.array(["ann", "bob"])[(np.arange(5_000) % 10 == 0).astype(int)]
    async with await PgVectorEpisodicStore.connect(embedded_postgres, 64, table=new_table()) as store:
        await load(store, users.tolist(), vectors)
        queries = units(20, 64, seed=6)
        for user in ("ann", "bob"):
            assert await ways(store, queries[0], user) == (False, True)
            assert await recall_at_10(store, vectors, queries, user, np.flatnonzero(users == user)) == 1.0


async def test_a_user_with_few_rows_is_counted_again_from_time_to_time_and_one_with_many_always(store, monkeypatch):
    monkeypatch.setattr(pgvector, "UNCOUNTED", 2)
    monkeypatch.setattr(pgvector, "MOST_EXACT", 3)
    asked = []
    execute = psycopg.AsyncConnection.execute

    async def listening(connection, query, *arguments, **options):
        asked.append({store._recall: "counted", store._exact: "exact"}.get(query))
        return await execute(connection, query, *arguments, **options)

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", listening)

    async def how(recalls: int) -> list[str]:
        asked.clear()
        for _ in range(recalls):
            await store.recall([1, 0], user_id="ann")
        return [way for way in asked if way]

    assert await how(2) == ["counted"] * 2, "of an unknown user nothing is known"
    await store.remember(record())
    assert await how(5) == ["counted", "exact", "exact", "counted", "exact"]
    for i in range(5):
        await store.remember(record(session_id=f"more {i}"))
    assert await how(4) == ["exact", "counted", "counted", "counted"]


async def test_a_user_with_a_small_share_is_compared_one_by_one_however_many_rows(embedded_postgres, monkeypatch):
    monkeypatch.setattr(pgvector, "MOST_EXACT", 0)
    monkeypatch.setitem(SETTINGS, "enable_sort", "off")  # or the planner judges for itself in so small a table
    vectors = clustered(4_000, 16, seed=7)
    users = np.array(["tenth", "third", "third", "third", *["rest"] * 6])[np.arange(4_000) % 10]
    async with await PgVectorEpisodicStore.connect(embedded_postgres, 16, table=new_table()) as store:
        await load(store, users.tolist(), vectors)
        assert await ways(store, vectors[0], "tenth") == (False, True)
        assert await ways(store, vectors[0], "rest") == (True, False)
        # The index goes on where the filter dropped most of what it found first.
        assert await ways(store, vectors[0], "third", k=50) == (True, False)


async def test_ten_users_each_in_a_corner_of_their_own_always_get_k_of_theirs(embedded_postgres, monkeypatch):
    """Asked from the middle of another's corner, where an index that filters afterwards finds none of theirs."""
    monkeypatch.setattr(pgvector, "MOST_EXACT", 0)
    monkeypatch.setattr(pgvector, "_RECALL", pgvector._RECALL.replace("0.15 *", "0.0 *"))
    monkeypatch.setitem(SETTINGS, "enable_sort", "off")  # or the planner, too, sees that it is wrong here
    corners = np.eye(16, dtype=np.float32)[:10]
    vectors = np.repeat(corners, 300, axis=0) + 0.05 * units(3_000, 16, seed=8)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    users = np.repeat([f"user{n}" for n in range(10)], 300)
    async with await PgVectorEpisodicStore.connect(embedded_postgres, 16, table=new_table()) as store:
        await load(store, users.tolist(), vectors)
        assert (await ways(store, corners[1], "user0"))[0]
        for number in range(10):
            other = corners[(number + 1) % 10]
            for k in (1, 10, 300, 1_000):
                found = await store.recall(other, k, user_id=f"user{number}")
                assert len(found) == min(k, 300)
                mine = {f"s{row}" for row in range(300 * number, 300 * number + 300)}
                assert {one.session_id for one in found} <= mine


@pytest.mark.parametrize("most_exact", [0, 20_000], ids=["through the index", "one by one"])
async def test_equal_scores_come_in_order_of_arrival_also_when_there_are_very_many(
    embedded_postgres, monkeypatch, most_exact
):
    monkeypatch.setattr(pgvector, "MOST_EXACT", most_exact)
    vectors = np.vstack([np.eye(4)[[1]], np.tile(np.eye(4)[0], (600, 1)), np.eye(4)[[2]]]).astype(np.float32)
    async with await PgVectorEpisodicStore.connect(embedded_postgres, 4, table=new_table()) as store:
        await load(store, ["ann"] * len(vectors), vectors)
        for k in (1, 7, 200):
            found = await store.recall([1, 0, 0, 0], k, user_id="ann")
            assert [one.session_id for one in found] == [f"s{row}" for row in range(1, k + 1)]


async def test_equal_scores_that_the_index_found_come_in_order_of_arrival(embedded_postgres, monkeypatch):
    monkeypatch.setattr(pgvector, "MOST_EXACT", 0)
    vectors = clustered(2_000, 16, seed=10)
    equal = np.random.default_rng(10).permutation(2_000)[:40]
    vectors[equal] = vectors[equal[0]]
    async with await PgVectorEpisodicStore.connect(embedded_postgres, 16, table=new_table()) as store:
        await load(store, ["ann"] * 2_000, vectors)
        assert await ways(store, vectors[equal[0]], "ann", k=30) == (True, False)
        found = await store.recall(vectors[equal[0]], 30, user_id="ann")
    assert [one.session_id for one in found] == [f"s{row}" for row in sorted(equal)[:30]]


async def test_vectors_lie_beside_the_other_columns_where_comparing_many_is_quick(embedded_postgres):
    async with await PgVectorEpisodicStore.connect(embedded_postgres, table=new_table()) as store:
        for number, vector in enumerate(units(5, 512, seed=11)):
            await store.remember(record(session_id=f"s{number}", embedding=vector, summary=secrets.token_hex(495)))
        async with await psycopg.AsyncConnection.connect(embedded_postgres) as connection:
            places = f"SELECT pg_column_toast_chunk_id(embedding) FROM {store._table}"
            assert await (await connection.execute(places)).fetchall() == [(None,)] * 5


async def test_forgetting_takes_the_vectors_out_of_the_index_too(embedded_postgres, monkeypatch):
    monkeypatch.setattr(pgvector, "MOST_EXACT", 0)
    vectors = clustered(1_000, 16, seed=9)
    users = np.where(np.arange(1_000) % 2 == 0, "ann", "bob")
    async with await PgVectorEpisodicStore.connect(embedded_postgres, 16, table=new_table()) as store:
        await load(store, users.tolist(), vectors)
        assert await store.forget("ann") == 500
        assert await store.recall(vectors[0], 10, user_id="ann") == []
        assert await recall_at_10(store, vectors, vectors[:20], "bob", np.flatnonzero(users == "bob")) >= 0.98
        assert await store.forget("ann") == 0


async def test_forgetting_is_not_repeated_where_its_outcome_is_unknown(store, embedded_postgres):
    await store.remember(record())
    die = f"die_{secrets.token_hex(4)}"
    async with await psycopg.AsyncConnection.connect(embedded_postgres, autocommit=True) as connection:
        await connection.execute(
            f"CREATE FUNCTION {die}() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN old; END'; "
            f"CREATE TRIGGER die BEFORE DELETE ON {store._table} FOR EACH ROW EXECUTE FUNCTION {die}()"
        )
    with pytest.raises(ConnectionError, match="whether the call had its effect is not known, so make it again"):
        await store.forget("ann")
    assert len(await store.recall([1, 0], user_id="ann")) == 1


# The same answers as in memory

small = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["s1", "s2", "s3", "s4", "s5"]),
        st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(rows=small, query=st.lists(st.floats(-2, 2, width=32), min_size=3, max_size=3), k=st.integers(1, 6))
def test_it_answers_as_the_memory_engine_does(shared_store, rows, query, k):
    url, table = shared_store

    async def compare() -> None:
        memory = InMemoryEpisodicStore()
        async with PgVectorEpisodicStore(url, 3, table=table) as postgres:
            for user in ("ann", "bob"):
                await postgres.forget(user)
            for number, (user, session, vector) in enumerate(rows):
                one = record(user, session, vector, f"Number {number}.", NOON + timedelta(hours=number))
                await memory.remember(one)
                await postgres.remember(one)
            for user in ("ann", "bob"):
                await same(memory, postgres, query, k, user)
                assert await postgres.forget(user) == await memory.forget(user)

    asyncio.run(compare())


async def same(memory: InMemoryEpisodicStore, postgres: PgVectorEpisodicStore, query, k: int, user: str) -> None:
    """The same scores to 1e-3, place by place; and the same record where no other score is that near."""
    every = await memory.recall(query, 100, user_id=user)
    expected, found = every[:k], await postgres.recall(query, k, user_id=user)
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-3)
    record_of = {one.session_id: one for one in every}
    for wanted, got in zip(expected, found, strict=True):
        assert (got.summary, got.created_at) == (
            record_of[got.session_id].summary,
            record_of[got.session_id].created_at,
        )
        near = [one.session_id for one in every if abs(one.score - wanted.score) <= 2e-3]
        assert got.session_id in near


@pytest.fixture(scope="module")
def shared_store(embedded_postgres) -> tuple[str, str]:
    return embedded_postgres, new_table()
