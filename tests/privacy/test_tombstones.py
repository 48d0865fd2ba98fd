"""The registry, in this process and shared: the same answers, and a forgetting that other processes obey."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from tests.conformance.conftest import own_table
from tests.conftest import needs
from tri_memory import PostgresPreferenceStore
from tri_memory.clock import ManualClock
from tri_memory.entity.records import Forgotten
from tri_memory.privacy.forget import Stores, forget_user
from tri_memory.privacy.guarded import guarded
from tri_memory.privacy.postgres_tombstones import PostgresTombstones
from tri_memory.privacy.pseudonyms import Pseudonyms
from tri_memory.privacy.tombstones import InMemoryTombstones, Tombstones, closed, drained

KEY = "0123456789abcdef" * 2
NAMES = Pseudonyms(KEY)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "embedded_postgres", "container_postgres"])
async def tombstones(request, clock) -> AsyncIterator[Tombstones]:
    if request.param == "memory":
        yield InMemoryTombstones(NAMES, clock=clock)
        return
    url = request.getfixturevalue(request.param)
    with registry_table(url) as table:
        async with PostgresTombstones(url, NAMES, table=table, clock=clock) as registry:
            yield registry


class registry_table:
    def __init__(self, url: str) -> None:
        self.url, self.name = url, f"r_{uuid4().hex[:16]}"

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *_: object) -> None:
        with needs("psycopg", "pip install psycopg").connect(self.url, autocommit=True) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {self.name}, {self.name}_writes")


async def test_a_write_that_nothing_overtakes_stands(tombstones):
    write = await tombstones.begin("ann")

    assert await tombstones.under_way("ann") == 1
    assert await tombstones.end(write) == "stands"
    assert await tombstones.under_way("ann") == 0
    assert await tombstones.forgotten_at("ann") is None


async def test_while_a_user_is_forgotten_nobody_writes_for_them_and_others_write_on(tombstones, clock):
    async with closed(tombstones, "ann") as at:
        assert at == clock()
        with pytest.raises(Forgotten, match="is being forgotten"):
            await tombstones.begin("ann")
        assert await tombstones.end(await tombstones.begin("bob")) == "stands"
    assert await tombstones.end(await tombstones.begin("ann")) == "stands"


async def test_what_began_before_or_at_the_same_time_is_refused_and_what_began_later_is_not(tombstones, clock):
    async with closed(tombstones, "ann") as at:
        pass
    for earlier in (at, at - timedelta(days=3)):
        with pytest.raises(Forgotten, match="before its user was forgotten"):
            await tombstones.begin("ann", earlier)
    assert await tombstones.end(await tombstones.begin("ann", at + timedelta(microseconds=1))) == "stands"
    with pytest.raises(ValueError, match="aware datetime"):
        await tombstones.begin("ann", at.replace(tzinfo=None))


async def test_a_write_under_way_is_waited_for_and_then_told_that_it_is_gone(tombstones):
    write = await tombstones.begin("ann")
    async with closed(tombstones, "ann"):
        assert await drained(tombstones, "ann", 0.05) == 1
        waiting = asyncio.create_task(drained(tombstones, "ann", 30))
        await asyncio.sleep(0.05)
        assert await tombstones.end(write) == "gone"
        assert await waiting == 0


async def test_a_write_that_nobody_waits_for_any_more_has_to_be_undone(tombstones):
    write = await tombstones.begin("ann")
    async with closed(tombstones, "ann"):
        pass
    new = await tombstones.begin("ann")

    assert await tombstones.end(write) == "undo"
    assert await tombstones.end(new) == "stands"


async def test_a_user_stays_shut_out_until_the_last_of_two_forgettings_is_done(tombstones):
    async with closed(tombstones, "ann"):
        async with closed(tombstones, "ann"):
            pass
        with pytest.raises(Forgotten):
            await tombstones.begin("ann")
    assert await tombstones.begin("ann")


async def test_a_clock_that_was_put_back_does_not_put_a_forgetting_back(tombstones, clock):
    async with closed(tombstones, "ann") as first:
        pass
    clock.advance(hours=-2)
    async with closed(tombstones, "ann") as second:
        pass

    assert await tombstones.forgotten_at("ann") == first == second


async def test_a_note_is_kept_until_it_is_purged(tombstones, clock):
    async with closed(tombstones, "ann") as at:
        assert await tombstones.purge(at + timedelta(days=1)) == 0  # it is not done yet
    assert await tombstones.purge(at) == 0
    assert await tombstones.purge(at + timedelta(microseconds=1)) == 1
    assert await tombstones.forgotten_at("ann") is None
    assert await tombstones.purge(at + timedelta(days=1)) == 0


async def test_what_waited_longer_than_a_note_is_kept_is_written_for_nobody(tombstones, clock):
    for user in ("ann", "bob"):
        clock.advance(hours=1)
        async with closed(tombstones, user) as at:
            pass
    clock.advance(days=7)
    assert await tombstones.purge(clock()) == 2
    assert await tombstones.purge(clock()) == 0
    for user in ("ann", "bob", "cid"):
        with pytest.raises(Forgotten, match="nobody knows"):
            await tombstones.begin(user, at)
        assert await tombstones.end(await tombstones.begin(user, at + timedelta(microseconds=1))) == "stands"
    async with closed(tombstones, "ann") as again:
        pass
    assert await tombstones.forgotten_at("ann") == again


async def test_many_writes_and_forgettings_at_once_leave_only_what_was_written_last(tombstones):
    kept: set[int] = set()

    async def write(number: int) -> None:
        try:
            announced = await tombstones.begin("ann")
        except Forgotten:
            return
        await asyncio.sleep(0.001 * (number % 5))
        kept.add(number)
        if await tombstones.end(announced) == "undo":
            kept.discard(number)

    async def forget() -> None:
        async with closed(tombstones, "ann"):
            kept.clear()
            assert await drained(tombstones, "ann", 30) == 0
            kept.clear()
            await asyncio.sleep(0)
            assert kept == set()

    for _ in range(3):
        await asyncio.gather(*(write(number) for number in range(20)), forget(), forget())
    await forget()
    assert kept == set()


# Shared by processes


@pytest.fixture
def tables(embedded_postgres) -> Iterator[tuple[str, str, str]]:
    """The server, a table of preferences, a table of the registry."""
    with own_table(embedded_postgres) as preferences, registry_table(embedded_postgres) as registry:
        yield embedded_postgres, preferences, registry


def writer(url: str, preferences: str, registry: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.privacy.registry_writer", url, preferences, registry, KEY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout.readline() == "writing\n"
    return process


async def test_input_43_a_forgetting_waits_for_a_slow_write_of_another_process_and_erases_it(tables):
    url, preferences, registry = tables
    async with (
        PostgresTombstones(url, NAMES, table=registry) as tombstones,
        PostgresPreferenceStore(url, table=preferences) as store,
    ):
        with await asyncio.to_thread(writer, *tables) as process:
            forgetting = asyncio.create_task(
                forget_user("ann", stores=Stores(preferences=store), tombstones=tombstones)
            )
            await asyncio.sleep(0.2)
            said, _ = await asyncio.to_thread(process.communicate, "go\n", 60)
            receipt = await forgetting

        assert said == "forgotten\n"
        assert (receipt.ok, receipt.writes_overtaken) == (True, 1)
        assert await store.all("ann") == {}
        assert await guarded(store, tombstones).set("ann", "order", "new")


async def test_a_writer_that_was_killed_holds_nobody_up_longer_than_the_patience_and_the_receipt_says_so(tables):
    url, preferences, registry = tables
    async with (
        PostgresTombstones(url, NAMES, table=registry) as tombstones,
        PostgresPreferenceStore(url, table=preferences) as store,
    ):
        with await asyncio.to_thread(writer, *tables) as process:
            process.kill()
        what = {"stores": Stores(preferences=store), "tombstones": tombstones, "patience_s": 0.1}
        receipt = await forget_user("ann", **what)
        assert (receipt.ok, receipt.writes_left) == (False, 1)
        with needs("psycopg", "pip install psycopg").connect(url, autocommit=True) as connection:  # ten minutes
            connection.execute(f"UPDATE {registry}_writes SET expires_at = clock_timestamp()")
        assert (await forget_user("ann", **what)).ok


async def test_a_forgetting_whose_process_died_does_not_shut_a_user_out_for_ever(tables):
    url, _, registry = tables
    async with PostgresTombstones(url, NAMES, table=registry) as tombstones:
        await tombstones.shut("ann")
        with pytest.raises(Forgotten):
            await tombstones.begin("ann")
        with needs("psycopg", "pip install psycopg").connect(url, autocommit=True) as connection:  # ten minutes
            connection.execute(f"UPDATE {registry} SET closed_until = clock_timestamp()")
        await tombstones.begin("ann")
        async with closed(tombstones, "ann"):
            pass
        await tombstones.begin("ann")


async def test_the_shared_registry_holds_no_raw_id(tables):
    url, _, registry = tables
    async with PostgresTombstones(url, NAMES, table=registry) as tombstones:
        await tombstones.begin("ann-of-7")
        await tombstones.shut("ann-of-7")
    with needs("psycopg", "pip install psycopg").connect(url) as connection:
        rows = connection.execute(f"SELECT u::text FROM {registry} u UNION ALL SELECT w::text FROM {registry}_writes w")
        text = str(rows.fetchall())
    assert text.count(NAMES.of_user("ann-of-7")) == 2
    assert "ann-of-7" not in text


async def test_a_registry_that_is_away_lets_nothing_be_written(tables):
    url, preferences, _ = tables
    async with PostgresPreferenceStore(url, table=preferences) as store:
        async with PostgresTombstones("postgresql://postgres:weak@127.0.0.1:1/postgres", NAMES) as away:
            with pytest.raises(ConnectionError):
                await guarded(store, away).set("ann", "a", "b")
        assert await store.all("ann") == {}
