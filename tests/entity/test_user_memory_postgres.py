"""What only the Postgres engine of users' records can get wrong: tables, indexes, plans, locks, processes."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

if os.environ.get("STRICT") != "1":
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")

import psycopg

from tri_memory import ManualClock
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.entity.records import Forgotten, UserMemoryStore, wanted

START = datetime(2026, 3, 1, 12, tzinfo=UTC)

WRITER = """
import asyncio, sys
from tri_memory.entity.postgres import PostgresUserMemoryStore

async def main():
    async with await PostgresUserMemoryStore.connect(sys.argv[1], table=sys.argv[2]) as store:
        await asyncio.gather(*(store.put("ann", "case", str(n % 5), {"by": sys.argv[3]}) for n in range(20)))

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""


def new_table() -> str:
    return f"user_memory_{secrets.token_hex(4)}"


@pytest.fixture
def url(embedded_postgres):
    return embedded_postgres


@pytest.fixture
async def store(url):
    async with await PostgresUserMemoryStore.connect(url, table=new_table()) as store:
        yield store


async def rows(url, query, values=None):
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        found = await connection.execute(query, values)
        return await found.fetchall() if found.description else []


def test_it_keeps_the_contract_and_shows_no_password():
    store = PostgresUserMemoryStore("postgresql://ann:s3cret@db:5432/shop")
    assert isinstance(store, UserMemoryStore)
    assert repr(store) == "PostgresUserMemoryStore(postgresql://ann:...@db:5432/shop, table='user_memory')"


async def test_the_table_has_the_columns_that_it_should_have(store, url):
    found = await rows(
        url,
        "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns "
        "WHERE table_name = %s ORDER BY ordinal_position",
        [store._table],
    )
    assert [(name, kind) for name, kind, *_ in found] == [
        ("id", "bigint"),
        ("user_id", "text"),
        ("memory_type", "text"),
        ("entity_id", "text"),
        ("content", "jsonb"),
        ("created_at", "timestamp with time zone"),
        ("updated_at", "timestamp with time zone"),
        ("relevance_score", "double precision"),
        ("is_active", "boolean"),
    ]
    assert {nullable for _, _, nullable, _ in found} == {"NO"}
    defaults = {name: default for name, _, _, default in found if default}
    assert defaults["id"].startswith("nextval(")
    assert (defaults["relevance_score"], defaults["is_active"]) == ("1.0", "true")


async def test_the_indexes_are_a_partial_one_by_time_and_a_gin_of_paths(store, url):
    found = dict(await rows(url, "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s", [store._table]))
    assert found[f"{store._table}_recent"].endswith(
        "USING btree (user_id, memory_type, updated_at DESC) WHERE is_active"
    )
    assert found[f"{store._table}_content"].endswith("USING gin (content jsonb_path_ops)")
    assert found[f"{store._table}_entity"].startswith("CREATE UNIQUE INDEX")
    assert found[f"{store._table}_entity"].endswith("USING btree (user_id, memory_type, entity_id)")


async def test_each_index_is_used_on_twenty_thousand_rows(store, url):
    """A hundred users, one of them with half of all rows; the statements are those that the store itself sends."""
    await rows(
        url,
        f"INSERT INTO {store._table} (user_id, memory_type, entity_id, content, updated_at) "
        "SELECT CASE WHEN n % 2 = 0 THEN 'big' ELSE 'user ' || n % 100 END, "
        "(ARRAY['identity', 'preference', 'case', 'device'])[1 + n % 4], 'e' || n, "
        "jsonb_build_object('serial', n, 'city', 'c' || n % 7), timestamptz '2026-03-01' + n * interval '1 second' "
        "FROM generate_series(1, 20000) AS n",
    )
    await rows(url, f"ANALYZE {store._table}")

    async def plan(user_id, **given):
        options = {"memory_type": None, "entity_ids": None, "since": None, "contains": None, "limit": 20, **given}
        query, values = store._query(wanted(user_id, **options))

        async def explain(connection):
            found = await connection.execute(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {query}", values)
            return "\n".join(line for (line,) in await found.fetchall())

        return await store._pool.run(explain)

    recent = await plan("big", memory_type="case")
    assert f"Index Scan using {store._table}_recent" in recent
    assert "Seq Scan" not in recent
    assert "Rows Removed by Filter" not in recent
    for by_entity in (
        await plan("big", memory_type="case", entity_ids=["e1004", "e1008"]),
        await plan("user 7", memory_type="device", entity_ids=["e707"]),
    ):
        assert f"using {store._table}_entity" in by_entity
        assert "Seq Scan" not in by_entity
    content = await plan("big", contains={"serial": 1004})
    assert f"Bitmap Index Scan on {store._table}_content" in content
    assert "Seq Scan" not in content
    one_user = await plan("user 7", since=START)
    assert f"{store._table}_recent" in one_user
    assert "Seq Scan" not in one_user


async def test_the_indexes_that_a_table_lacks_are_made_and_its_rows_stay(store, url):
    await store.put("ann", "case", "1", {"n": 1})
    await rows(url, f"DROP INDEX {store._table}_recent, {store._table}_entity")
    await rows(url, f"DROP TABLE {store._table}_users")
    async with await PostgresUserMemoryStore.connect(url, table=store._table) as again:
        assert [one.content for one in await again.find("ann")] == [{"n": 1}]
        await again.put("ann", "case", "1", {"n": 2})
        assert [one.content for one in await again.find("ann")] == [{"n": 2}]
    names = {
        name for (name,) in await rows(url, f"SELECT indexname FROM pg_indexes WHERE tablename = '{store._table}'")
    }
    assert names >= {f"{store._table}_recent", f"{store._table}_entity", f"{store._table}_content"}


async def test_a_table_of_something_else_is_named_and_left_alone(url):
    table = new_table()
    await rows(url, f"CREATE TABLE {table} (user_id text, price numeric)")
    with pytest.raises(ValueError, match=f"the table {table} exists and is not one of users' records"):
        await PostgresUserMemoryStore.connect(url, table=table)
    assert await rows(url, f"SELECT to_regclass('{table}_users')") == [(None,)]


async def test_putting_again_is_the_same_row(store, url):
    await store.put("ann", "case", "1", {"n": 1})
    [(first,)] = await rows(url, f"SELECT id FROM {store._table}")
    await store.put("ann", "case", "1", {"n": 2})
    await store.forget("ann")
    await store.put("ann", "case", "1", {"n": 3})
    assert await rows(url, f"SELECT id FROM {store._table}") == [(first,)]


async def test_a_put_makes_a_faded_record_fresh(store, url):
    await store.put("ann", "case", "1", {"n": 1})
    await rows(url, f"UPDATE {store._table} SET relevance_score = 0.3")
    assert (await store.find("ann"))[0].relevance_score == 0.3
    assert (await store.put("ann", "case", "1", {"n": 2})).relevance_score == 1.0
    assert (await store.find("ann"))[0].relevance_score == 1.0


async def test_the_last_moment_of_the_calendar_survives_a_server_east_of_greenwich(url):
    last = datetime.max.replace(tzinfo=UTC)
    east = f"{url}{'&' if '?' in url else '?'}options=-ctimezone%3DAsia/Shanghai"
    async with PostgresUserMemoryStore(east, table=new_table(), clock=ManualClock(last)) as store:
        written = await store.put("ann", "case", "1", {})
        assert await store.find("ann", since=last) == [written]
    assert await rows(east, "SHOW timezone") == [("Asia/Shanghai",)]


async def test_a_put_that_waits_for_a_connection_while_its_user_is_forgotten_is_refused(url):
    """Two stores, as in two processes: the first one's only connection is busy until the second one has forgotten."""
    table = new_table()
    async with (
        PostgresUserMemoryStore(url, table=table, pool_size=1) as slow,
        PostgresUserMemoryStore(url, table=table) as other,
    ):
        await slow.put("ann", "case", "0", {})
        busy, go_on = asyncio.Event(), asyncio.Event()

        async def long_call(connection):
            busy.set()
            await go_on.wait()

        blocker = asyncio.create_task(slow._pool.run(long_call))
        await busy.wait()
        put = asyncio.create_task(slow.put("ann", "case", "1", {"secret": "canary"}))
        await asyncio.sleep(0.05)
        assert await other.forget("ann") == 1
        assert not put.done()
        go_on.set()
        await blocker
        with pytest.raises(Forgotten):
            await put
        assert await other.find("ann") == []
        assert await rows(url, f"SELECT count(*) FROM {table} WHERE content ? 'secret'") == [(0,)]


async def test_a_transaction_that_is_writing_when_its_user_is_forgotten_leaves_nothing(store, url):
    """The save is slow inside of its transaction: a trigger waits for a lock that the test holds."""
    await rows(
        url,
        f"CREATE FUNCTION {store._table}_wait() RETURNS trigger LANGUAGE plpgsql AS "
        f"'BEGIN PERFORM pg_advisory_xact_lock(hashtext(''{store._table}'')); RETURN NEW; END'",
    )
    await rows(
        url,
        f"CREATE TRIGGER wait BEFORE INSERT ON {store._table} FOR EACH ROW EXECUTE FUNCTION {store._table}_wait()",
    )
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as gate:
        await gate.execute("SELECT pg_advisory_lock(hashtext(%s))", [store._table])
        put = asyncio.create_task(store.put("ann", "case", "1", {"secret": "canary"}))
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
        await until(url, waits, [f"INSERT INTO {store._table} %"], 1)
        forget = asyncio.create_task(store.forget("ann"))
        await until(url, waits, [f"INSERT INTO {store._table}_users %"], 1)
        assert not put.done()
        assert not forget.done()
        await gate.execute("SELECT pg_advisory_unlock(hashtext(%s))", [store._table])
        await put
        assert await forget == 1
    assert await store.find("ann") == []
    assert await rows(url, f"SELECT is_active FROM {store._table}") == [(False,)]


async def until(url, query, values, count):
    async with asyncio.timeout(30):
        while await rows(url, query, values) != [(count,)]:  # noqa: ASYNC110 (no event says what a server waits for)
            await asyncio.sleep(0.02)


async def test_a_write_while_the_purge_runs_loses_neither_its_record_nor_its_version(url):
    """Writers that come back after having been forgotten, against purges that want to drop the same users."""
    table, clock = new_table(), ManualClock(START)
    async with PostgresUserMemoryStore(url, table=table, clock=clock, pool_size=6) as store:
        users = [f"user {n}" for n in range(20)]
        for turn in range(5):
            await asyncio.gather(*(store.put(user, "case", "1", {"turn": turn}) for user in users))
            await asyncio.gather(*(store.forget(user) for user in users))
            clock.advance(days=8)
            purges = [store.purge(clock() - timedelta(days=7)) for _ in range(3)]
            puts = [store.put(user, "case", "1", {"turn": turn, "back": True}) for user in users]
            await asyncio.gather(*purges, *puts)
            for user in users:
                assert [one.content for one in await store.find(user)] == [{"turn": turn, "back": True}]
                assert await store.version(user) > 0
            clock.advance(seconds=1)


def test_processes_that_start_at_once_make_one_table_and_one_record_each_entity(url):
    table = new_table()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, url, table, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=60)[1] for process in processes] == ["", "", ""]
    stored = asyncio.run(rows(url, f"SELECT entity_id FROM {table} ORDER BY entity_id"))
    assert [entity for (entity,) in stored] == ["0", "1", "2", "3", "4"]


async def test_a_refused_write_changes_nothing_not_even_the_version(store, url):
    await store.put("ann", "case", "1", {})
    await store.forget("ann")
    version = await store.version("ann")
    with pytest.raises(Forgotten):
        await store.put("ann", "case", "1", {"n": 1}, began_at=START)
    assert await store.version("ann") == version
    assert await rows(url, f"SELECT content FROM {store._table}") == [({},)]


@pytest.mark.parametrize("table", ["", "a b", "x; DROP TABLE y", "Table", "a" * 41, None])
def test_a_table_name_that_would_need_quotes_is_refused(table):
    with pytest.raises(ValueError, match="table must be at most 40"):
        PostgresUserMemoryStore("postgresql://localhost/shop", table=table)
