"""A text that was planted in every layer is nowhere afterwards: in no store, and in no file of the servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from tests.conftest import needs
from tests.engines.servers import missing
from tests.privacy.conftest import EMBEDDER
from tri_memory import ChatTurn, EpisodicRecord, PgVectorEpisodicStore, PostgresPreferenceStore, RedisSessionStore
from tri_memory.clock import ManualClock, system_clock
from tri_memory.engines import Engine
from tri_memory.engines.kind import POSTGRES, REDIS
from tri_memory.engines.unavailable import Unavailable
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.entity.short_context import RedisShortContext
from tri_memory.privacy.forget import Stores, forget_user, purge
from tri_memory.privacy.hunt import hunt_files, hunt_postgres, hunt_redis
from tri_memory.privacy.scrub import scrub_postgres, scrub_redis

TABLES = ["preferences", "episodes", "episodes_archive", "user_memory", "user_memory_users"]


def own(kind) -> Iterator[tuple[str, Path]]:
    """A server that no other test writes to: its URL and its folder."""
    needs("redis" if kind is REDIS else "psycopg", "pip install redis 'psycopg[binary]'")
    engine = Engine(kind, "embedded", limit_s=60)
    try:
        engine.start()
    except Unavailable as why:
        missing("embedded", why)
    yield engine.url, engine._server._guard.folder
    engine.stop()


@pytest.fixture
def valkey() -> Iterator[tuple[str, Path]]:
    yield from own(REDIS)


@pytest.fixture
def postgres() -> Iterator[tuple[str, Path]]:
    yield from own(POSTGRES)


async def stores_at(stack: AsyncExitStack, redis_url: str, postgres_url: str) -> Stores:
    truth = await stack.enter_async_context(PostgresUserMemoryStore(postgres_url))
    return Stores(
        sessions=await stack.enter_async_context(RedisSessionStore.from_url(redis_url)),
        preferences=await stack.enter_async_context(PostgresPreferenceStore(postgres_url)),
        episodes=await stack.enter_async_context(PgVectorEpisodicStore(postgres_url, EMBEDDER.dimensions)),
        dimensions=EMBEDDER.dimensions,
        user_memory=await stack.enter_async_context(CachedUserMemoryStore.from_url(truth, redis_url)),
        short_context=await stack.enter_async_context(RedisShortContext.from_url(redis_url)),
    )


async def plant(stores: Stores, user: str, text: str) -> None:
    for number in range(30):
        session = f"{user}/s{number}"
        await stores.sessions.append(session, ChatTurn("user", f"{text} {number}"))
        summary = f"{text} {number}"
        record = EpisodicRecord(user, session, summary, EMBEDDER.encode([summary])[0], system_clock())
        await stores.episodes.remember(record)
        await stores.preferences.set(user, f"key {number}", f"{text} {number}")
        await stores.user_memory.put(user, "case", f"{text}-{number}", {"said": text, "number": number})
    await stores.episodes.remember(
        EpisodicRecord(user, "old", text, EMBEDDER.encode([text])[0], system_clock() - timedelta(days=400))
    )
    await stores.episodes.fade()
    await stores.user_memory.find(user)
    await stores.short_context.put(user, [ChatTurn("user", text)])


async def test_input_44_after_forgetting_purging_and_scrubbing_a_canary_is_in_no_store_and_no_file(valkey, postgres):
    (redis_url, redis_folder), (postgres_url, postgres_folder) = valkey, postgres
    canary, stays, user = f"canary-{uuid4().hex}", f"stays-{uuid4().hex}", f"user-{uuid4().hex}"
    clock = ManualClock(system_clock())
    async with AsyncExitStack() as stack:
        stores = await stores_at(stack, redis_url, postgres_url)
        await plant(stores, user, canary)
        await plant(stores, "bob", stays)
        await analyse(postgres_url)
        await slow_everything(redis_url, stores, user, canary)
        # It is everywhere: a search that found nothing before would prove nothing afterwards.
        assert len(await hunt_postgres(postgres_url, [canary])) == 4
        assert set(await hunt_redis(redis_url, [canary])) == {"keys", "slowlog"}
        vector = np.asarray(EMBEDDER.encode([f"{canary} 7"])[0], np.float16).tobytes()
        before = hunt_files(postgres_folder, [canary])
        assert any("pg_wal" in path for path in before)
        assert any("base" in path for path in before)
        assert hunt_files(redis_folder, [canary])

        receipt = await forget_user(user, stores=stores, canaries=[canary, user])
        assert receipt.ok
        assert "keys" not in await hunt_redis(redis_url, [canary, user])  # nor in a key's name
        assert list(await hunt_postgres(postgres_url, [canary])) == ["public.user_memory"]  # hidden for seven days
        clock.advance(days=8)
        await purge(stores=stores, clock=clock)
        assert await hunt_postgres(postgres_url, [canary, user]) == {}
        assert hunt_files(postgres_folder, [vector])
        assert hunt_files(postgres_folder, [canary])  # which is why a deletion is not enough
        assert hunt_files(redis_folder, [canary])

        await scrub_redis(redis_url)
        await scrub_postgres(postgres_url, TABLES)
        assert await hunt_redis(redis_url, [canary, user]) == {}
        await settled(redis_folder, [canary, user])
        assert hunt_files(redis_folder, [canary, user]) == {}
        assert hunt_files(postgres_folder, [canary, user, vector]) == {}
        assert len(await hunt_postgres(postgres_url, [stays])) == 4
        assert len(await stores.preferences.all("bob")) == 30
        query = EMBEDDER.encode([f"{stays} 3"])[0]
        assert (await stores.episodes.recall(query, 1, user_id="bob"))[0].summary == f"{stays} 3"
        assert len(await stores.sessions.list_sessions()) == 30


async def test_the_only_users_words_leave_the_statistics_and_the_log_files_that_wait_to_be_used_again(postgres):
    psycopg, (url, folder) = needs("psycopg", "pip install psycopg"), postgres
    canary = f"canary-{uuid4().hex}"
    async with PostgresPreferenceStore(url) as store:
        for number in range(10):
            await store.set("ann", f"{canary} {number}", f"{canary} {number}")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE preferences")
            sampled = "SELECT count(*) FROM pg_stats WHERE position(%s IN histogram_bounds::text) > 0"
            assert connection.execute(sampled, [canary]).fetchone() == (2,)
            for _ in range(12):  # four megabytes each, in files of sixteen
                connection.execute("SELECT pg_logical_emit_message(false, 'test', repeat(%s, 100000))", [canary])
            connection.execute("SELECT pg_switch_wal()")
            connection.execute("CHECKPOINT")  # the old files are renamed, to be written to again later
            now = connection.execute("SELECT pg_walfile_name(pg_current_wal_lsn())").fetchone()[0]
        await store.forget("ann")
        waiting = [path for path in hunt_files(folder, [canary]) if "pg_wal" in path and Path(path).name > now]
        assert len(waiting) > 2
        assert (await scrub_postgres(url, ["preferences"]))["tables"] == 1
        assert hunt_files(folder, [canary]) == {}
        assert await store.set("ann", "order", "new")


async def settled(folder: Path, texts: list[str]) -> None:
    """The old append-only file is unlinked by a thread of the server."""
    for _ in range(100):
        if not hunt_files(folder, texts):
            return
        await asyncio.sleep(0.05)


async def analyse(url: str) -> None:
    """What the server does by itself after some time: it takes samples of the content for its plans."""
    psycopg = needs("psycopg", "pip install psycopg")
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("ANALYZE")
        await connection.execute("CHECKPOINT")
        row = await (
            await connection.execute("SELECT count(*) FROM pg_stats WHERE tablename = 'preferences'")
        ).fetchone()
        assert row[0] > 0


async def slow_everything(url: str, stores: Stores, user: str, text: str) -> None:
    """A server so busy that an append counts as a slow command."""
    from redis.asyncio import Redis

    async with Redis.from_url(url) as client:
        await client.config_set("slowlog-log-slower-than", 0)
        await stores.sessions.append(f"{user}/s0", ChatTurn("user", text))
        await client.config_set("slowlog-log-slower-than", 10_000)


async def test_who_is_no_superuser_is_told_what_stays_and_nothing_is_half_done(postgres):
    psycopg, (url, _) = needs("psycopg", "pip install psycopg"), postgres
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'weak'")
    with pytest.raises(ValueError, match="only a superuser"):
        await scrub_postgres(f"postgresql://reader:weak@{url.rpartition('@')[2]}", TABLES)


async def test_a_transaction_that_was_open_before_is_named_as_what_keeps_the_deleted(postgres, monkeypatch):
    psycopg, (url, _) = needs("psycopg", "pip install psycopg"), postgres
    monkeypatch.setattr("tri_memory.privacy.scrub.LIMIT_S", 0.3)
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT txid_current()")
        with pytest.raises(TimeoutError, match="still open"):
            await scrub_postgres(url, TABLES)
    assert (await scrub_postgres(url, TABLES))["tables"] == 0


async def test_scrubbing_leaves_the_servers_settings_as_they_were(postgres):
    psycopg, (url, _) = needs("psycopg", "pip install psycopg"), postgres
    by_an_administrator = "SELECT setting FROM pg_file_settings WHERE name = 'wal_recycle'"
    with psycopg.connect(url, autocommit=True) as connection:
        before = connection.execute(by_an_administrator).fetchall()
        await scrub_postgres(url, [])
        assert connection.execute("SHOW wal_recycle").fetchone() == ("on",)
        assert connection.execute(by_an_administrator).fetchall() == before
        connection.execute("ALTER SYSTEM SET wal_recycle = off")
        connection.execute("SELECT pg_reload_conf()")
        try:
            await scrub_postgres(url, [])
            assert connection.execute(by_an_administrator).fetchall() == [*before, ("off",)]
        finally:
            connection.execute("ALTER SYSTEM RESET wal_recycle")
            connection.execute("SELECT pg_reload_conf()")


async def test_a_redis_with_a_snapshot_has_it_written_anew(tmp_path, valkey):
    from redis.asyncio import Redis

    url, folder = valkey
    canary = f"canary-{uuid4().hex}"
    async with Redis.from_url(url) as client:
        await client.set("a", canary)
        await client.save()
        assert any(path.endswith(".rdb") for path in hunt_files(folder, [canary]))
        await client.delete("a")
    assert await scrub_redis(url) == {"aof": 1, "rdb": 1}
    await settled(folder, [canary])
    assert hunt_files(folder, [canary]) == {}


async def test_the_hunt_finds_a_text_in_every_kind_of_key_and_in_a_keys_name(valkey):
    from redis.asyncio import Redis

    url, _ = valkey
    async with Redis.from_url(url) as client:
        await client.set("s", "a needle")
        await client.rpush("l", "x", "needle")
        await client.sadd("set", "needle")
        await client.zadd("z", {"needle": 1})
        await client.hset("h", "f", "needle")
        await client.hset("hf", "needle", "v")
        await client.set("needle", "v")
        await client.xadd("stream", {"f": "needle"})
        await client.set("other", "hay")
    assert (await hunt_redis(url, ["needle"]))["keys"] == 8
    assert (await hunt_redis(url, ["needle"], match="h*"))["keys"] == 2
    assert await hunt_redis(url, ["nothing"]) == {}
