"""What only the Postgres engine of preferences can get wrong: rows, order, schema, refusals."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from datetime import datetime

import pytest

if os.environ.get("STRICT") != "1":
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")

import psycopg

from tri_memory.contracts import PreferenceStore
from tri_memory.preference.postgres import PostgresPreferenceStore

CREATE = """
import asyncio, sys
from tri_memory.preference.postgres import PostgresPreferenceStore

async def main():
    async with await PostgresPreferenceStore.connect(sys.argv[1], table=sys.argv[2]) as store:
        await store.set(sys.argv[3], "size", "42")

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""


def new_table() -> str:
    return f"preferences_{secrets.token_hex(4)}"


@pytest.fixture
async def store(embedded_postgres):
    async with await PostgresPreferenceStore.connect(embedded_postgres, table=new_table()) as store:
        yield store


async def rows(url: str, query: str) -> list[tuple]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        return await (await connection.execute(query)).fetchall()


def test_it_keeps_the_contract():
    assert isinstance(PostgresPreferenceStore("postgresql://localhost/shop"), PreferenceStore)


async def test_setting_again_is_the_same_row_with_its_first_time_and_a_later_change(store, embedded_postgres):
    await store.set("ann", "size", "41")
    query = f"SELECT seq, created_at, updated_at, value FROM {store._table}"
    [(seq, created, updated, _)] = await rows(embedded_postgres, query)
    assert created == updated
    await store.set("ann", "size", "42")
    [(same_seq, same_created, later, value)] = await rows(embedded_postgres, query)
    assert (same_seq, same_created, value) == (seq, created, "42")
    assert isinstance(later, datetime)
    assert later > updated


async def test_preferences_come_in_the_order_of_first_writing(store):
    for key in ["tea", "size", "apples"]:
        await store.set("ann", key, "1")
    await store.set("ann", "tea", "2")
    assert list((await store.all("ann")).items()) == [("tea", "2"), ("size", "1"), ("apples", "1")]


async def test_ids_are_compared_as_python_does(store):
    ids = ["ann", "Ann", "ann ", "a%", "a_", "'; DROP TABLE x; --", "ａｎｎ", "é", "e\u0301", "😀" * 40]
    for number, user_id in enumerate(ids):
        assert await store.set(user_id, "n", str(number))
    assert [await store.get(user_id, "n") for user_id in ids] == [str(number) for number in range(len(ids))]
    assert [await store.forget(user_id) for user_id in ids] == [1] * len(ids)


async def test_the_longest_key_and_value_fit(store):
    assert await store.set("ann", "😀" * 50, "語" * 500)
    assert await store.all("ann") == {"😀" * 50: "語" * 500}


async def test_a_user_id_longer_than_the_index_takes_is_refused_and_nothing_else_happens(store):
    await store.set("ann", "size", "42")
    with pytest.raises(ValueError, match="Postgres can't index ids of that length"):
        await store.set(secrets.token_hex(5_000), "size", "42")
    assert await store.get("ann", "size") == "42"


async def test_what_was_written_is_there_for_the_next_store(embedded_postgres):
    table = new_table()
    async with PostgresPreferenceStore(embedded_postgres, table=table) as first:
        await first.set("ann", "size", "42")
    async with PostgresPreferenceStore(embedded_postgres, table=table) as second:
        assert await second.all("ann") == {"size": "42"}


async def test_ten_writers_of_one_key_leave_one_row(store):
    assert all(await asyncio.gather(*(store.set("ann", "size", str(number)) for number in range(10))))
    assert await store.forget("ann") == 1


def test_two_processes_that_start_at_once_make_one_table(embedded_postgres):
    for _ in range(3):
        table = new_table()
        users = ["ann", "bob", "cem", "dee"]
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", CREATE, embedded_postgres, table, user],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for user in users
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        errors = [process.communicate(timeout=60)[1] for process in processes]
        assert errors == [""] * len(users)
        stored = asyncio.run(rows(embedded_postgres, f"SELECT user_id FROM {table} ORDER BY user_id"))
        assert [user for (user,) in stored] == users


@pytest.mark.parametrize("table", ["", "a b", "x; DROP TABLE y", "Table", "1st", "a" * 41, None, 'a"b'])
def test_a_table_name_that_would_need_quotes_is_refused(table):
    with pytest.raises(ValueError, match="table must be at most 40 of a-z, 0-9 and _"):
        PostgresPreferenceStore("postgresql://localhost/shop", table=table)


@pytest.mark.parametrize("size", [0, -1, 2.5, None, True])
def test_a_pool_needs_at_least_one_connection(size):
    with pytest.raises(ValueError, match="pool_size must be a whole number of at least 1"):
        PostgresPreferenceStore("postgresql://localhost/shop", pool_size=size)


@pytest.mark.parametrize(
    "url",
    ["", None, "redis://:s3cret@localhost", "host=db password=s3cret", "postgresql+psycopg2://ann:s3cret@db/shop"],
)
def test_what_is_no_postgres_url_is_refused_without_its_password(url):
    with pytest.raises(ValueError, match="a Postgres URL is postgresql://") as caught:
        PostgresPreferenceStore(url)
    assert "s3cret" not in str(caught.value)


def test_a_url_that_libpq_cannot_read_is_refused_without_its_password():
    with pytest.raises(ValueError, match="no Postgres URL that libpq can read") as caught:
        PostgresPreferenceStore("postgresql://ann:s3cret@db/shop?nonsense=s3cret")
    assert "s3cret" not in str(caught.value)


def test_a_store_shows_where_it_is_and_no_password():
    store = PostgresPreferenceStore("postgresql://ann:s3cret@db:5432/shop")
    assert repr(store) == "PostgresPreferenceStore(postgresql://ann:...@db:5432/shop, table='preferences')"


async def test_a_table_of_something_else_is_named_and_left_alone(embedded_postgres):
    table = new_table()
    async with await psycopg.AsyncConnection.connect(embedded_postgres) as connection:
        await connection.execute(f"CREATE TABLE {table} (user_id text, price numeric)")
    with pytest.raises(ValueError, match=f"the table {table} exists and is not one of preferences"):
        await PostgresPreferenceStore.connect(embedded_postgres, table=table)
