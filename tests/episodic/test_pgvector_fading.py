"""What only the Postgres engine can get wrong about fading: locks, kills, older tables, rights, the rule in SQL."""

from __future__ import annotations

import asyncio
import os
import secrets
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

if os.environ.get("STRICT") != "1":
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]' pgvector")

import psycopg

from tests.episodic.test_pgvector_migration import OtherDatabase
from tri_memory import ManualClock
from tri_memory.contracts import EpisodicRecord
from tri_memory.episodic import pgvector, pgvector_archive
from tri_memory.episodic.fading import Faded, MemoryId
from tri_memory.episodic.pgvector import PgVectorEpisodicStore
from tri_memory.recall.decay import StepState, is_archived

NEW_YEAR = datetime(2026, 1, 1, 12, tzinfo=UTC)
SPRING = NEW_YEAR + timedelta(days=100)


def record(user_id="ann", session_id="s1", embedding=(1.0, 0.0), summary="A refund.", created_at=NEW_YEAR):
    return EpisodicRecord(user_id, session_id, summary, embedding, created_at)


class Database:
    """The server, as somebody sees it who doesn't use our stores, and one table's name."""

    def __init__(self, url: str) -> None:
        self.url, self.table = url, f"episodes_{secrets.token_hex(4)}"

    async def do(self, *statements: str) -> list[tuple]:
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                done = await connection.execute(statement.replace("{table}", self.table))
            return await done.fetchall() if done.description else []

    def store(self, when: datetime = SPRING, dimensions: int = 2) -> PgVectorEpisodicStore:
        return PgVectorEpisodicStore(self.url, dimensions, table=self.table, clock=ManualClock(when))

    async def where(self) -> dict[str, list[str]]:
        """{table: the sessions in it}, every row of it."""
        both = {"active": self.table, "archive": f"{self.table}_archive"}
        return {
            name: [one for (one,) in await self.do(f"SELECT session_id FROM {table} ORDER BY 1")]
            for name, table in both.items()
        }

    async def until_somebody_waits(self, waiting: int = 1) -> None:
        """For an advisory lock."""
        for _ in range(500):
            [(found,)] = await self.do("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            if found >= waiting:
                return
            await asyncio.sleep(0.01)
        raise AssertionError("nobody waits for the lock")


@pytest.fixture(params=["embedded_postgres", "container_postgres"])
async def database(request):
    made = Database(request.getfixturevalue(request.param))
    yield made
    await made.do("DROP TABLE IF EXISTS {table}, {table}_archive")


@pytest.fixture
async def small(embedded_postgres):
    """The same on one engine, where the other has nothing to add."""
    made = Database(embedded_postgres)
    yield made
    await made.do("DROP TABLE IF EXISTS {table}, {table}_archive")


# The rule


async def test_the_statement_archives_what_the_rule_archives_for_every_state_at_every_age(small):
    states = [StepState(tenths, months) for tenths in range(3, 11) for months in (0, 1, 2, 5)]
    ages = [0, 1, 29, 30, 31, 59, 60, 89, 90, 91, 119, 120, 149, 150, 179, 180, 240, 241, 700]
    async with small.store() as store:
        await store.fade()
        rows = ", ".join(
            f"('ann', '{state.tenths} {state.months} {age}', 'S.', '{SPRING - timedelta(days=age)}', "
            f"{state.tenths}, {state.months})"
            for state in states
            for age in ages
        )
        columns = "(user_id, session_id, summary, created_at, tenths, months)"
        await small.do(f"INSERT INTO {{table}} {columns} VALUES {rows}")
        found = {one.session_id for one in (await store.fade(dry_run=True)).archived}
    assert found == {
        f"{state.tenths} {state.months} {age}" for state in states for age in ages if is_archived(state.weight(age))
    }


@pytest.mark.parametrize("time", ["infinity", "-infinity", "10000-01-01", "0001-12-31 BC"])
async def test_a_memory_whose_time_no_clock_shows_is_skipped_and_named_and_the_others_fade(small, time):
    bad = MemoryId("ann", "bad")
    async with small.store() as store:
        for number, user in enumerate(("ann", "ann", "bob")):
            await store.remember(record(user, f"s{number}"))
        await small.do(
            "INSERT INTO {table} (user_id, session_id, summary, embedding, created_at, tenths) "
            f"VALUES ('ann', 'bad', 'S.', '[1,0]', '{time}', 3)"
        )
        would = await store.fade(dry_run=True)
        assert would == Faded(4, (("ann", "s0"), ("ann", "s1"), ("bob", "s2")), (bad,))
        assert await store.fade() == would
        assert await store.fade() == Faded(1, (), (bad,))
        for call in (store.recall([1, 0], user_id="ann"), store.use("ann", "bad")):
            with pytest.raises(ValueError, match=r"holds a time outside the years 1 to 9999: (timestamp|date) too"):
                await call
        await small.do("UPDATE {table} SET created_at = '2026-01-01'")
        assert await store.fade() == Faded(1, (bad,))


@pytest.mark.parametrize("table", ["episodes_archive", "_archive"])
async def test_the_name_of_an_archive_is_no_name_for_a_table(small, table):
    for make in (PgVectorEpisodicStore.connect, PgVectorEpisodicStore.existing):
        with pytest.raises(ValueError, match=f"table must not end in _archive, .*; got '{table}'"):
            await make(small.url, table=table)
    with pytest.raises(ValueError, match="must not end in _archive"):
        PgVectorEpisodicStore(small.url, table=table)


async def test_a_use_that_adds_nothing_writes_nothing(small):
    async with small.store(NEW_YEAR + timedelta(days=20)) as store:
        await store.remember(record())
        before = await small.do("SELECT xmin, ctid FROM {table}")
        assert await store.use("ann", "s1")
        assert await small.do("SELECT xmin, ctid FROM {table}") == before
        store._clock.advance(days=10)
        assert await store.use("ann", "s1")
    assert await small.do("SELECT tenths, months FROM {table}") == [(9, 1)]


# Killed


DIE = """
CREATE FUNCTION {table}_die() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN IF new.session_id = ''s6'' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN new; END';
CREATE TRIGGER die BEFORE INSERT ON {table}_archive FOR EACH ROW EXECUTE FUNCTION {table}_die()
"""


async def test_a_run_killed_half_way_has_lost_and_doubled_nothing_and_the_next_one_ends_it(database, monkeypatch):
    monkeypatch.setattr(pgvector_archive, "PAGE", 4)
    names = [f"s{i}" for i in range(10)]
    async with database.store() as store:
        for name in names:
            await store.remember(record(session_id=name))
        await database.do(DIE)
        with pytest.raises(ConnectionError, match="whether the call had its effect is not known, so make it again"):
            await store.fade()
        assert await database.where() == {"active": names[4:], "archive": names[:4]}
        assert len(await store.recall([1, 0], 100, user_id="ann")) == 6
        await database.do("DROP TRIGGER die ON {table}_archive", "DROP FUNCTION {table}_die")
        assert [one.session_id for one in (await store.fade()).archived] == names[4:]
        assert await database.where() == {"active": [], "archive": names}


async def test_what_is_restored_by_a_killed_call_is_still_in_the_archive_or_back_and_never_in_both(database):
    async with database.store() as store:
        await store.remember(record(session_id="s6"))
        await store.fade()
        await database.do(DIE.replace("{table}_archive", "{table}"))
        for call in (store.restore("ann", "s6"), store.remember(record(session_id="s6"))):
            with pytest.raises(ConnectionError, match="so make it again"):
                await call
            assert await database.where() == {"active": [], "archive": ["s6"]}
        await database.do("DROP TRIGGER die ON {table}", "DROP FUNCTION {table}_die")
        assert await store.restore("ann", "s6")
        assert await database.where() == {"active": ["s6"], "archive": []}


# While somebody else is at work on the same user


@pytest.mark.parametrize(
    ("meanwhile", "left"),
    [
        ("DELETE FROM {table} WHERE user_id = 'ann'", {"active": [], "archive": []}),
        ("UPDATE {table} SET tenths = 5, months = 3", {"active": ["s1"], "archive": []}),
        ("UPDATE {table} SET fades_from = '2026-04-11'", {"active": ["s1"], "archive": []}),
    ],
    ids=["forgotten", "used", "written again"],
)
async def test_the_job_judges_anew_what_changed_while_it_waited(database, meanwhile, left):
    async with database.store() as store, await psycopg.AsyncConnection.connect(database.url) as other:
        await store.remember(record())
        await store._archive.lock(other, ["ann"])
        running = asyncio.create_task(store.fade())
        await database.until_somebody_waits()
        await other.execute(meanwhile.replace("{table}", database.table))
        await other.commit()
        assert (await running).archived == ()
        assert await database.where() == left


async def test_forgetting_waits_for_a_move_that_has_begun_and_then_finds_what_was_moved(database):
    async with database.store() as store, await psycopg.AsyncConnection.connect(database.url) as other:
        for user in ("ann", "bob"):
            await store.remember(record(user))
        page = await store._archive.page(other, None, SPRING.date())
        await store._archive.lock(other, ["ann"])
        await store._archive.put_away(other, page.over[:1], SPRING)
        forgetting = asyncio.create_task(store.forget("ann"))
        await database.until_somebody_waits()
        assert [one.session_id for one in await store.recall([1, 0], user_id="ann")] == ["s1"]
        assert await store.forget("bob") == 1
        await other.commit()
        assert await forgetting == 1
        assert await database.where() == {"active": [], "archive": []}


async def test_two_jobs_that_want_the_same_users_do_not_wait_for_each_other(database):
    users = [f"user {n}" for n in range(40)]
    async with database.store() as store:
        for user in users:
            await store.remember(record(user))

        async def take(names):
            async with await psycopg.AsyncConnection.connect(database.url) as connection:
                await store._archive.lock(connection, names)
                await asyncio.sleep(0)

        await asyncio.gather(*(take(users if n % 2 else users[::-1]) for n in range(10)), store.fade(), store.fade())
        assert len((await database.where())["archive"]) == 40


async def test_a_memory_that_an_older_program_wrote_beside_its_archived_form_becomes_one_again(small):
    async with small.store() as store:
        await store.remember(record())
        await store.fade()
        await small.do(
            "INSERT INTO {table} (user_id, session_id, summary, embedding, created_at) "
            "VALUES ('ann', 's1', 'Again.', '[0,1]', '2026-01-05')"
        )
        assert (await store.fade()).archived == (("ann", "s1"),)
        assert [(one.summary, one.created_at) for one in await store.archived("ann")] == [("Again.", NEW_YEAR)]


# The hot table


async def test_a_user_with_many_rows_of_which_few_are_left_is_compared_one_by_one_again(small, monkeypatch):
    monkeypatch.setattr(pgvector, "MOST_EXACT", 3)
    async with small.store() as store:
        for number in range(8):
            created = NEW_YEAR if number < 6 else SPRING
            await store.remember(record(session_id=f"s{number}", embedding=[1, number], created_at=created))
        await store.recall([1, 0], user_id="ann")
        assert not store._needs_no_count("ann")
        assert len((await store.fade()).archived) == 6
        assert [one.session_id for one in await store.recall([1, 0], user_id="ann")] == ["s6", "s7"]
        assert store._needs_no_count("ann")
        for number in range(6):
            await store.restore("ann", f"s{number}")
        store._uncounted["ann"] = 0
        assert len(await store.recall([1, 0], 10, user_id="ann")) == 8
        assert not store._needs_no_count("ann")


async def test_the_index_finds_as_many_after_most_rows_have_gone(small, monkeypatch):
    monkeypatch.setattr(pgvector, "MOST_EXACT", 0)
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((600, 2))
    async with small.store() as store:
        await store.fade()
        values = ", ".join(
            f"('ann', 's{row}', 'S.', '[{x},{y}]', '{NEW_YEAR if row % 10 else SPRING}')"
            for row, (x, y) in enumerate(vectors)
        )
        await small.do(f"INSERT INTO {{table}} (user_id, session_id, summary, embedding, created_at) VALUES {values}")
        assert (await store.fade()).stay == 60
        found = await store.recall([1, 0], 10, user_id="ann")
    left = np.arange(0, 600, 10)
    cosines = vectors[left] @ [1, 0] / np.linalg.norm(vectors[left], axis=1)
    assert {one.session_id for one in found} == {f"s{row}" for row in left[np.argsort(-cosines)[:10]]}


# Tables and users from before


BEFORE_FADING = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    "CREATE TABLE {table} (seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY, "
    'user_id text COLLATE "C" NOT NULL, session_id text COLLATE "C" NOT NULL, summary text NOT NULL, '
    "embedding halfvec(2), created_at timestamptz NOT NULL)",
    "ALTER TABLE {table} ALTER COLUMN embedding SET STORAGE MAIN",
    "CREATE UNIQUE INDEX {table}_of_user ON {table} (user_id, session_id)",
    "CREATE INDEX {table}_nearest ON {table} USING hnsw (embedding halfvec_cosine_ops)",
    "INSERT INTO {table} (user_id, session_id, summary, embedding, created_at) VALUES "
    "('ann', 'old', 'Old.', '[1,0]', '2026-01-01'), ('ann', 'blank', 'Blank.', NULL, '2026-01-01'), "
    "('ann', 'new', 'New.', '[1,0]', '2026-04-01')",
)
FILES = "SELECT relname, relfilenode FROM pg_class WHERE relname LIKE '{table}%' AND relname NOT LIKE '%_archive%'"


async def test_a_table_from_before_fading_is_not_rewritten_and_fades_by_created_at(database):
    await database.do(*BEFORE_FADING)
    before = await database.do(FILES)
    async with database.store() as store:
        assert (await store.fade()).archived == (("ann", "blank"), ("ann", "old"))
        assert [one.session_id for one in await store.recall([1, 0], user_id="ann")] == ["new"]
        assert await store.restore("ann", "old")
        assert await store.restore("ann", "blank")
        assert [one.session_id for one in await store.recall([1, 0], user_id="ann")] == ["old", "new"]
        assert await store.forget("ann") == 3
    assert sorted(await database.do(FILES)) == sorted(before)


async def test_another_table_by_the_archives_name_is_named_and_left_alone(small):
    await small.do("CREATE TABLE {table}_archive (day date)")
    with pytest.raises(ValueError, match=f"the table {small.table}_archive exists and is no archive of {small.table}"):
        await small.store().fade()
    assert await small.do("SELECT * FROM {table}_archive") == []


async def test_who_may_write_the_table_may_write_the_archive_that_its_owner_adds(embedded_postgres):
    async with OtherDatabase(embedded_postgres) as other:
        database = Database(other.url)
        weak = PgVectorEpisodicStore(other.as_weak_user(), 2, table=database.table, clock=ManualClock(SPRING))
        await database.do(
            *BEFORE_FADING,
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {{table}} TO {other.name}",
            "GRANT SELECT ON {table} TO PUBLIC",
        )
        with pytest.raises(RuntimeError, match=r"may not make or alter the table .*: have its owner connect once"):
            await weak.fade()
        async with database.store() as owner:
            await owner.fade(dry_run=True)
        async with weak:
            assert len((await weak.fade()).archived) == 2
            assert await weak.restore("ann", "old")
            assert await weak.use("ann", "new")
            await weak.remember(record(session_id="blank"))
            assert await weak.forget("ann") == 3


@pytest.mark.parametrize("column", ["halfvec(2)", "vector(2)", "vector"])
async def test_a_store_of_what_exists_needs_no_dimensions(small, column):
    await small.do(*BEFORE_FADING, "DROP INDEX {table}_nearest", f"ALTER TABLE {{table}} ALTER embedding TYPE {column}")
    await small.do("DELETE FROM {table} WHERE embedding IS NULL")
    store = await PgVectorEpisodicStore.existing(small.url, table=small.table)
    assert store is not None
    async with store:
        assert len(await store.recall([1, 0], user_id="ann")) == 2


async def test_of_a_table_that_is_not_there_there_is_no_store_and_none_is_made(small):
    assert await PgVectorEpisodicStore.existing(small.url, table=small.table) is None
    assert await small.do("SELECT to_regclass('{table}')") == [(None,)]
