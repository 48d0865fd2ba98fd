"""A cache that is down, silent, locked, read-only or full of rubbish: slower, with an end, and nothing is lost."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from tests.conftest import needs
from tests.entity.test_cache import ANN, Truth, keys_of
from tri_memory.engines.port import free_port
from tri_memory.entity.cache import CachedUserMemoryStore


@pytest.fixture
async def client(embedded_valkey):
    aioredis = needs("redis", "pip install redis").asyncio
    async with aioredis.Redis.from_url(embedded_valkey) as client:
        yield client


@pytest.fixture
def prefix():
    return f"{uuid4().hex}:"


class Answering:
    """A server that takes connections and answers everything with the same bytes, or, with none, not at all."""

    def __init__(self, answer):
        self._answer, self.asked = answer, 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def _serve(self, reader, writer):
        while await reader.read(65_536):
            self.asked += 1
            if self._answer:
                writer.write(self._answer)
                await writer.drain()
        writer.close()


ANSWERS = {
    "silent": b"",
    "locked": b"-NOAUTH Authentication required.\r\n",
    "loading": b"-LOADING Redis is loading the dataset in memory\r\n",
    "no Redis": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "out of memory": b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "another type": b"$5\r\nhello\r\n",
    "a number": b":7\r\n",
}


async def live(store):
    """Everything that a store can do, as it has to come out."""
    await store.put("ann", "case", "1", {"n": 1})
    assert [one.content["n"] for one in await store.find("ann")] == [1]
    await store.put("ann", "case", "1", {"n": 2})
    assert [one.content["n"] for one in await store.find("ann", memory_type="case")] == [2]
    assert await store.version("ann") > 0
    assert await store.forget("ann") == 1
    assert await store.find("ann") == []


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_a_server_that_answers_wrong_or_not_at_all_loses_nothing(answer):
    async with (
        Answering(answer) as server,
        CachedUserMemoryStore.from_url(Truth(), server.url, limit_s=0.1) as store,
    ):
        await live(store)
        assert store.stats.failures >= 1
        assert store.stats.hits == 0


async def test_a_server_that_failed_is_left_alone_for_a_while_and_then_asked_again():
    async with (
        Answering(b"") as server,
        CachedUserMemoryStore.from_url(Truth(), server.url, limit_s=0.1, pause_s=0.5) as store,
    ):
        await store.find("ann")
        asked = server.asked
        for _ in range(20):
            await store.find("ann")
        assert (server.asked, store.stats.failures) == (asked, 1)
        await asyncio.sleep(0.6)
        await store.find("ann")
        assert store.stats.failures == 2
        assert store.stats.misses == 22


async def test_nobody_listening_is_given_up_within_the_limit():
    store = CachedUserMemoryStore.from_url(Truth(), f"redis://127.0.0.1:{free_port()}", limit_s=0.1)
    async with store:
        async with asyncio.timeout(5):  # the client alone would try for longer, once a call
            await asyncio.gather(*(store.find(f"user {n}") for n in range(100)))
        await live(store)


@pytest.mark.parametrize("what", ["version", "writing", "index", "case"])
@pytest.mark.parametrize(
    "value", ["list", "hash", b"\xff\xfe", b"", b"?", b"[[1]]", b'["abcdef"]', b"{}", b"[" * 9_000]
)
async def test_rubbish_under_a_key_is_swept_away(client, prefix, what, value):
    truth = Truth()
    store = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=5)
    await store.put("ann", "case", "1", {"n": 1})
    await store.find("ann", memory_type="case")
    first = await truth.version("ann")
    name = f"{prefix}{{{ANN}}}:{what}" + (f":{first}" if what == "case" else "")
    await client.delete(name)
    if value == "list":
        await client.rpush(name, "x")
    elif value == "hash":
        await client.hset(name, "x", "y")
    else:
        await client.set(name, value)
    for _ in range(2):
        assert [one.content["n"] for one in await store.find("ann", memory_type="case")] == [1]
    before = store.stats.hits
    assert [one.content["n"] for one in await store.find("ann", memory_type="case")] == [1]
    assert store.stats.hits == before + 1
    await store.put("ann", "case", "1", {"n": 2})
    assert [one.content["n"] for one in await store.find("ann", memory_type="case")] == [2]
    await store.forget("ann")
    left = []
    if what == "index":  # who lost the names of the entries can't delete them: nobody is served, and they expire
        left = [f"{prefix}{{{ANN}}}:case:{first}"]
        assert 0 < await client.ttl(left[0]) <= 3_600
    assert await keys_of(client, prefix) == left
    assert await store.find("ann", memory_type="case") == []


async def test_a_read_only_server_is_as_good_as_none(prefix):
    from redis.asyncio import Redis

    from tri_memory.engines.embedded_valkey import EmbeddedValkey
    from tri_memory.engines.patience import Limit

    node = EmbeddedValkey(f"replicaof 127.0.0.1 {free_port()}")
    node.start(Limit(30))
    try:
        async with Redis.from_url(node.url) as client:
            store = CachedUserMemoryStore(Truth(), client, prefix=prefix, limit_s=5)
            await live(store)
            assert store.stats.hits == 0
            assert store.stats.failures >= 1
    finally:
        node.stop()


async def test_what_was_forgotten_while_redis_was_away_is_deleted_there_by_the_next_read_of_anyone(client, prefix):
    truth = Truth()
    store = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=5, pause_s=0.3)
    for user in ("ann", "bob"):
        await store.put(user, "case", "1", {"secret": "s3cret"})
        await store.find(user)
    store._calls._quiet_until = float("inf")  # as after a failure
    assert await store.forget("ann") == 1
    assert await store.find("ann") == []
    assert [key for key in await keys_of(client, prefix) if f"{{{ANN}}}:any" in key]
    store._calls._quiet_until = 0.0
    await store.find("bob")
    assert not [key for key in await keys_of(client, prefix) if f"{{{ANN}}}" in key]
    assert await store.find("ann") == []


async def test_a_write_that_redis_was_not_told_of_is_read_from_the_truth_by_this_process(client, prefix):
    truth = Truth()
    store = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=5)
    await store.put("ann", "case", "1", {"n": 1})
    await store.find("ann")
    run, broken = store._calls._run, True

    async def sometimes(script, *arguments, kind):
        return None if broken else await run(script, *arguments, kind=kind)

    store._calls._run = sometimes  # the scripts fail while plain reads work
    await store.put("ann", "case", "1", {"n": 2})
    assert [one.content["n"] for one in await store.find("ann")] == [2]
    broken = False
    for _ in range(3):
        assert [one.content["n"] for one in await store.find("ann")] == [2]
    assert store.stats.hits == 2


async def test_a_write_whose_caller_gave_up_is_not_hidden_by_an_old_entry(client, prefix):
    reached, go = asyncio.Event(), asyncio.Event()

    class Slow(Truth):
        async def put(self, *args, **options):
            record = await super().put(*args, **options)
            reached.set()
            await go.wait()
            return record

    truth = Slow()
    store = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=5)
    go.set()
    await store.put("ann", "case", "1", {"n": 1})
    await store.find("ann")
    go.clear(), reached.clear()
    task = asyncio.create_task(store.put("ann", "case", "1", {"n": 2}))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    other = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=5)
    for reader in (other, store, other):
        assert [one.content["n"] for one in await reader.find("ann")] == [2]


async def test_no_log_line_names_the_user_or_what_is_known_of_them(client, prefix, caplog):
    store = CachedUserMemoryStore(Truth(), client, prefix=prefix, limit_s=5)
    await store.put("ann-4711", "case", "1", {"secret": "s3cret"})
    await store.find("ann-4711")
    for key in await keys_of(client, prefix):
        if ":any:" in key:
            await client.set(key, b"\xff s3cret")
    await store.find("ann-4711")
    assert len(caplog.records) == 1
    async with Answering(b"-ERR no\r\n") as server, CachedUserMemoryStore.from_url(Truth(), server.url) as broken:
        await broken.find("ann-4711")
    assert len(caplog.records) == 2
    assert "ann-4711" not in caplog.text
    assert "s3cret" not in caplog.text
