"""Every order in which a reader, a writer, a forgetting and a death can meet: nothing old is ever served afterwards."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import subprocess
import sys
from contextlib import suppress
from uuid import uuid4

import pytest

from tests.conformance.conftest import own_table
from tests.conftest import needs
from tests.entity.test_cache import keys_of
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.records import Forgotten


class Stepped:
    """A store, or a client, of which each call waits to be let through, before and after its work."""

    def __init__(self, inner, gate):
        self._inner, self._gate = inner, gate

    def __getattr__(self, name):
        method = getattr(self._inner, name)
        if not asyncio.iscoroutinefunction(method):
            return method

        async def stepped(*args, **options):
            await self._gate()
            result = await method(*args, **options)
            await self._gate()
            return result

        return stepped


class Stepper:
    """Lets one of several tasks go a step further at a time, in a given order."""

    def __init__(self):
        self._waiting: dict[str, asyncio.Future] = {}

    def gate(self, who):
        async def wait():
            self._waiting[who] = asyncio.get_running_loop().create_future()
            await self._waiting[who]

        return wait

    async def run(self, tasks, order):
        """`order` names who goes on; whoever is done is passed over. All have ended when this returns."""
        running = {who: asyncio.ensure_future(task) for who, task in tasks.items()}
        endless = itertools.chain(order, itertools.cycle(running))
        while not all(task.done() for task in running.values()):
            await self._settle(running)
            who = next(endless)
            if who in self._waiting and not self._waiting[who].done():
                self._waiting.pop(who).set_result(None)
        return {who: await asyncio.gather(task, return_exceptions=True) for who, task in running.items()}

    async def _settle(self, running):
        while any(not task.done() and who not in self._waiting for who, task in running.items()):  # noqa: ASYNC110
            await asyncio.sleep(0.0005)


@pytest.fixture(params=["embedded_valkey", "container_redis"])
async def client(request):
    aioredis = needs("redis", "pip install redis").asyncio
    async with aioredis.Redis.from_url(request.getfixturevalue(request.param)) as client:
        yield client


@pytest.fixture(params=["memory", "postgres"])
async def truth(request):
    if request.param == "memory":
        yield InMemoryUserMemoryStore()
        return
    from tri_memory.entity.postgres import PostgresUserMemoryStore

    url = request.getfixturevalue("embedded_postgres")
    with own_table(url) as table:
        async with await PostgresUserMemoryStore.connect(url, table=table) as store:
            yield store


def stepped_store(stepper, who, truth, client, prefix):
    gate = stepper.gate(who)
    store = CachedUserMemoryStore(Stepped(truth, gate), client, prefix=prefix, limit_s=30)
    call = store._calls._call

    async def stepped(command, kind):  # a step before and after each call to Redis, too
        await gate()
        result = await call(command, kind)
        await gate()
        return result

    store._calls._call = stepped
    return store


@pytest.mark.parametrize("seed", range(25))
async def test_two_readers_a_writer_and_a_forgetting_in_any_order_bring_nothing_back(truth, client, seed):
    prefix = f"{uuid4().hex}:"
    plain = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=30)
    await plain.put("ann", "case", "old", {"text": "s3cret"})
    if seed % 2:
        await plain.find("ann")
    stepper = Stepper()
    names = ["reader", "other reader", "writer", "forgetter"]
    stores = {who: stepped_store(stepper, who, truth, client, prefix) for who in names}

    async def write():
        with suppress(Forgotten):
            await stores["writer"].put("ann", "case", "new", {"text": "s3cret"})

    order = random.Random(seed).choices(names, k=200)
    results = await stepper.run(
        {
            "reader": stores["reader"].find("ann"),
            "other reader": stores["other reader"].find("ann", memory_type="case"),
            "writer": write(),
            "forgetter": stores["forgetter"].forget("ann"),
        },
        order,
    )
    assert not [each for [each] in results.values() if isinstance(each, BaseException)]
    now = await truth.find("ann")
    for reader in (plain, *[CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=30) for _ in range(2)]):
        assert await reader.find("ann") == now
        assert await reader.find("ann", memory_type="case") == now
    if not now:
        for key in [key for key in await keys_of(client, prefix) if not key.endswith(":index")]:
            assert b"s3cret" not in await client.get(key)


async def test_a_put_that_was_called_before_a_forgetting_is_refused_even_if_redis_was_slow(truth, client):
    """The put is held up at its mark in Redis; the user is forgotten meanwhile."""
    prefix, stepper = f"{uuid4().hex}:", Stepper()
    slow = stepped_store(stepper, "put", truth, client, prefix)
    plain = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=30)
    task = asyncio.ensure_future(slow.put("ann", "case", "1", {}))
    await stepper._settle({"put": task})
    await plain.forget("ann")
    [result] = (await stepper.run({"put": task}, []))["put"]
    assert isinstance(result, Forgotten)
    assert await plain.find("ann") == await truth.find("ann") == []


async def test_a_reader_held_up_with_old_records_puts_nothing_in_after_the_write(truth, client):
    prefix, stepper = f"{uuid4().hex}:", Stepper()
    plain = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=30)
    await plain.put("ann", "case", "1", {"n": 1})
    for steps in range(1, 12):  # held up after each of its steps in turn
        task = await held(stepper, "reader", stepped_store(stepper, "reader", truth, client, prefix), steps)
        await plain.put("ann", "case", "1", {"n": steps + 1})
        await stepper.run({"reader": task}, [])
        assert [one.content["n"] for one in await plain.find("ann")] == [steps + 1]
        assert [one.content["n"] for one in await plain.find("ann")] == [steps + 1]


async def held(stepper, who, store, steps):
    """A read that has gone so many steps and waits."""
    task = asyncio.ensure_future(store.find("ann"))
    for _ in range(steps):
        await stepper._settle({who: task})
        if who in stepper._waiting:
            stepper._waiting.pop(who).set_result(None)
    await stepper._settle({who: task})
    return task


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize("a_steps", range(3, 12))
async def test_two_readers_held_up_at_any_two_steps_serve_nothing_old_after_a_write(embedded_valkey, a_steps, first):
    """One may bring back an old version, and the other the old records to it: neither may."""
    aioredis = needs("redis", "pip install redis").asyncio
    async with aioredis.Redis.from_url(embedded_valkey) as client:
        for b_steps in range(3, 12):
            prefix, stepper, truth = f"{uuid4().hex}:", Stepper(), InMemoryUserMemoryStore()
            plain = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=30)
            await plain.put("ann", "case", "1", {"n": 1})
            stores = {who: stepped_store(stepper, who, truth, client, prefix) for who in "ab"}
            steps = {"a": a_steps, "b": b_steps}
            tasks = {who: await held(stepper, who, stores[who], steps[who]) for who in "ab"}
            await plain.put("ann", "case", "1", {"n": 2})
            await stepper.run(tasks, [first] * 20)
            for _ in range(2):
                assert [one.content["n"] for one in await plain.find("ann")] == [2], b_steps


@pytest.mark.parametrize("steps", range(1, 12))
async def test_a_reader_held_up_while_the_user_is_forgotten_leaves_no_copy_in_redis(truth, client, steps):
    prefix, stepper = f"{uuid4().hex}:", Stepper()
    plain = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=30)
    await plain.put("ann", "case", "1", {"text": "s3cret"})
    task = await held(stepper, "reader", stepped_store(stepper, "reader", truth, client, prefix), steps)
    await plain.forget("ann")
    await stepper.run({"reader": task}, [])
    for key in [key for key in await keys_of(client, prefix) if not key.endswith(":index")]:
        assert b"s3cret" not in await client.get(key)


async def test_a_write_that_postgres_ends_after_its_answer_was_lost_is_hidden_by_no_entry(client):
    prefix = f"{uuid4().hex}:"

    class Lost(InMemoryUserMemoryStore):
        async def put(self, *args, **options):
            raise ConnectionError("the connection was lost while the transaction was ending")

    truth, late = Lost(), InMemoryUserMemoryStore.put
    writer = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=30)
    reader = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=30)
    await late(truth, "ann", "case", "1", {"n": 1})
    assert [one.content["n"] for one in await reader.find("ann")] == [1]
    with pytest.raises(ConnectionError):
        await writer.put("ann", "case", "1", {"n": 2})
    for store in (reader, writer, reader):
        assert [one.content["n"] for one in await store.find("ann")] == [1]
    await late(truth, "ann", "case", "1", {"n": 2})
    for store in (reader, writer, reader):
        assert [one.content["n"] for one in await store.find("ann")] == [2]


DYING = """
import asyncio, os, sys
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.postgres import PostgresUserMemoryStore

class Dying(PostgresUserMemoryStore):
    async def put(self, *args, **options):
        await super().put(*args, **options)
        os.kill(os.getpid(), 9)  # between Postgres and Redis

    async def forget(self, *args, **options):
        await super().forget(*args, **options)
        os.kill(os.getpid(), 9)

async def main():
    truth = Dying(sys.argv[2], table=sys.argv[3])
    options = {"prefix": sys.argv[4], "limit_s": 30, "check_s": float(sys.argv[6])}
    store = CachedUserMemoryStore.from_url(truth, sys.argv[1], **options)
    if sys.argv[5] == "put":
        await store.put("ann", "case", "1", {"n": 2})
    else:
        await store.forget("ann")

asyncio.run(main())
"""


@pytest.mark.parametrize("what", ["put", "forget"])
@pytest.mark.parametrize("check_s", [60, 0.05])
async def test_a_writer_killed_between_postgres_and_redis_leaves_no_stale_entry(
    embedded_valkey, embedded_postgres, what, check_s
):
    """With 60 s the dead writer's mark still stands; with 0.05 s nobody believes it any more."""
    from tri_memory.entity.postgres import PostgresUserMemoryStore

    prefix = f"{uuid4().hex}:"
    expected = [2] if what == "put" else []
    with own_table(embedded_postgres) as table:
        truth = PostgresUserMemoryStore(embedded_postgres, table=table)
        store = CachedUserMemoryStore.from_url(truth, embedded_valkey, prefix=prefix, limit_s=30)
        async with truth, store:
            await store.put("ann", "case", "1", {"n": 1})
            for _ in range(2):
                assert [one.content["n"] for one in await store.find("ann")] == [1]
            assert store.stats.hits == 1
            arguments = [embedded_valkey, embedded_postgres, table, prefix, what, str(check_s)]
            dead = await asyncio.to_thread(
                subprocess.run, [sys.executable, "-c", DYING, *arguments], timeout=60, env=dict(os.environ)
            )
            assert dead.returncode == -9
            await asyncio.sleep(0.1)
            for _ in range(3):
                assert [one.content["n"] for one in await store.find("ann")] == expected
            assert store.stats.hits == (1 if check_s == 60 else 3)
