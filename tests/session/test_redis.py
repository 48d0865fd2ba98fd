"""What is particular to sessions in Redis: keys, time to live, index, round trips, lost answers.

What every engine does alike is in tests/conformance; killed processes and restarted servers are in tests/faults.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis
from redis.crc import key_slot

from tests.session.conftest import TTL_S, fill, user
from tests.session.proxy import proxy
from tri_memory import ChatTurn, CountPolicy, ManualClock, RedisSessionStore, TokenWatermark, blocking
from tri_memory.session.redis_scripts import APPEND
from tri_memory.summary import is_summary


async def lives_of(client: Any, prefix: str) -> dict[str, int]:
    """Key, without its prefix -> milliseconds to live, for every key of this test."""
    keys = [key async for key in client.scan_iter(match=f"{prefix}*", count=1_000)]
    return {key.removeprefix(prefix): await client.pttl(key) for key in keys}


# Keys


async def test_a_session_is_a_list_of_json_and_a_hash_and_a_place_in_the_index(make, client, prefix):
    await make().append("s", ChatTurn("tool", "22 °C", "weather"))
    assert await client.lrange(f"{prefix}{{s}}", 0, -1) == ['{"role":"tool","content":"22 °C","toolName":"weather"}']
    assert await client.zrange(f"{prefix}index", 0, -1) == ["s"]
    assert (await lives_of(client, prefix)).keys() == {"{s}", "{s}:meta", "{s}:seen", "index"}


async def test_after_a_fold_the_list_in_redis_has_one_summary_and_twenty_turns(make, client, prefix):
    await fill(make(summarizer=lambda span: "summary"), 41)
    assert await client.llen(f"{prefix}{{s}}") == 21
    assert (await lives_of(client, prefix)).keys() == {"{s}", "{s}:meta", "{s}:seen", "index"}, (
        "the lock is still there"
    )


ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.sampled_from("{}%:*?[]\\ "))


@given(one=ids, other=ids)
def test_no_two_sessions_share_a_key_and_the_keys_of_one_share_a_slot(one: str, other: str):
    store = RedisSessionStore(Redis(), prefix="p:")
    keys = store._keys(one) + (store._keys(other) if other != one else [])
    assert len({*keys, "p:index"}) == len(keys) + 1
    assert len({key_slot(key.encode()) for key in store._keys(f"x{one}")}) == 1


async def test_hostile_ids_are_found_listed_and_cleared_and_nothing_else_is_touched(make):
    names = [
        "a-b:{c}@d.com *",
        "{c}",
        "c",
        "c}:meta",
        "*",
        "?",
        "[a-z]",
        "a b\n",
        "%7Bc%7D",
        "会话 一",
        "s:lock",
        "index",
    ]
    store = make()
    for name in names:
        await store.append(name, user(name))
    assert [row.session_id for row in await store.list_sessions()] == names[::-1]
    for i, name in enumerate(names):
        assert await store.get_history(name) == [user(name)]
        await store.clear(name)
        assert await store.get_history(name) == []
        assert [row.session_id for row in await store.list_sessions()] == names[:i:-1]


async def test_two_prefixes_and_one_session_id_are_two_sessions(make, prefix):
    one, other = make(prefix=f"{prefix}a:"), make(prefix=f"{prefix}a:b")
    await one.append("s", user("one"))
    await other.append("s", user("other"))
    await other.clear("s")
    assert await one.get_history("s") == [user("one")]
    assert [row.turns for row in await one.list_sessions()] == [1]
    assert await other.list_sessions() == []


@pytest.mark.parametrize(("option", "value"), [("prefix", "a{b}"), ("prefix", None), ("ttl_s", 0), ("lock_s", "1")])
def test_a_bad_option_is_refused_when_the_store_is_made(option, value):
    with pytest.raises(ValueError, match=option):
        RedisSessionStore(Redis(), **{option: value})


# Time to live


async def test_after_an_append_and_after_a_fold_every_key_has_the_same_life(make, client, prefix):
    store = make(summarizer=lambda span: "summary", policy=CountPolicy(4, 2))
    for count in (1, 3, 1, 2):  # the fifth turn folds
        await fill(store, count)
        lives = await lives_of(client, prefix)
        assert set(lives) == {"{s}", "{s}:meta", "{s}:seen", "index"}
        assert all(TTL_S * 1_000 - 5_000 < life <= TTL_S * 1_000 for life in lives.values())
        assert max(lives.values()) - min(lives.values()) < 1_000


async def test_nothing_but_an_append_renews_a_life(make, client, prefix):
    store = make(summarizer=lambda span: "summary", policy=CountPolicy(4, 2))
    await fill(store, 3)
    for key in ("{s}", "{s}:meta", "{s}:seen", "index"):
        await client.pexpire(prefix + key, 60_000)
    await store.get_window("s")
    await store.get_history("s")
    await store.list_sessions()
    await store.clear("another")
    await client.ping()
    assert all(0 < life <= 60_000 for life in (await lives_of(client, prefix)).values())
    await fill(store, 1)
    assert all(life > 60_000 for life in (await lives_of(client, prefix)).values())


async def test_a_fold_keeps_the_life_that_the_append_gave(make, client, prefix):
    async def slow(span: tuple[ChatTurn, ...]) -> str:
        await client.pexpire(f"{prefix}{{s}}", 60_000)
        return "summary"

    await fill(make(summarizer=slow, policy=CountPolicy(4, 2)), 5)
    assert await client.llen(f"{prefix}{{s}}") == 3
    assert 0 < await client.pttl(f"{prefix}{{s}}") <= 60_000


async def test_a_thousand_expired_sessions_are_gone_from_list_and_index(make, client, prefix):
    short, long = make(ttl_s=0.5), make()
    await long.append("stays", user("hi"))
    for i in range(1_000):
        await short.append(f"goes {i}", user("hi"))
    await long.append("stays", user("hi"))
    assert await client.zcard(f"{prefix}index") == 1_001
    await asyncio.sleep(0.7)
    assert [row.session_id for row in await long.list_sessions()] == ["stays"]
    assert await client.zcard(f"{prefix}index") == 1


async def test_the_index_shrinks_without_being_listed_when_new_sessions_come(make, client, prefix):
    store = make()
    long_ago = (datetime.now(UTC).timestamp() - TTL_S - 120) * 1e6
    await client.zadd(f"{prefix}index", {f"ghost {i}": long_ago + i for i in range(1_000)})
    await store.append("new", user("hi"))
    assert await client.zrange(f"{prefix}index", 0, -1) == ["new"]


async def test_an_index_that_a_longer_living_store_shares_keeps_that_stores_sessions(make, client, prefix):
    await make(ttl_s=10 * TTL_S).append("long", user("hi"))
    await client.zadd(f"{prefix}index", {"long": (datetime.now(UTC).timestamp() - 2 * TTL_S) * 1e6})
    await make().append("short", user("hi"))
    assert [row.session_id for row in await make().list_sessions()] == ["short", "long"]


async def test_a_session_written_to_while_it_is_taken_for_a_ghost_stays_listed(make, client, prefix):
    store = make()
    await store.append("s", user("hi"))
    await client.delete(f"{prefix}{{s}}")

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return getattr(client, name)

        async def evalsha(self, *arguments: Any) -> Any:
            await store.append("s", user("back again"))
            return await client.evalsha(*arguments)

        async def eval(self, *arguments: Any) -> Any:
            return await client.eval(*arguments)

    await RedisSessionStore(Slow(), prefix=prefix).list_sessions()
    assert [row.session_id for row in await store.list_sessions()] == ["s"]


async def test_a_renewal_that_fails_loses_no_message_and_the_next_write_heals_it(server, prefix):
    async with Redis.from_url(server, decode_responses=True) as client:
        await poor_then_healed(client, server, prefix)


async def poor_then_healed(client: Any, server: str, prefix: str) -> None:
    store = RedisSessionStore(client, prefix=prefix, ttl_s=TTL_S)
    name = f"u{uuid4().hex}"
    await client.execute_command("ACL", "SETUSER", name, "on", ">pw", "~*", "&*", "+@all", "-pexpire", "-expire")
    try:
        address = server.rpartition("@")[2]
        async with Redis.from_url(f"redis://{name}:pw@{address}") as poor:
            await RedisSessionStore(poor, prefix=prefix).append("s", user("kept"))
    finally:
        await client.execute_command("ACL", "DELUSER", name)
    assert await client.pttl(f"{prefix}{{s}}") == -1, "the test did not make the renewal fail"
    await store.append("s", user("healing"))
    assert await store.get_history("s") == [user("kept"), user("healing")]
    assert all(0 < life <= TTL_S * 1_000 for life in (await lives_of(client, prefix)).values())


# Order


async def test_a_clock_that_jumps_back_changes_what_is_told_and_not_the_order(make):
    clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    store = make(clock=clock)
    for name in ("a", "b"):
        await store.append(name, user("hi"))
    clock.advance(days=-30)
    await store.append("a", user("hi"))
    rows = await store.list_sessions()
    assert [row.session_id for row in rows] == ["a", "b"]
    assert rows[0].updated_at == datetime(2026, 1, 30, tzinfo=UTC)


async def test_a_server_whose_clock_was_ahead_once_still_lists_the_last_session_first(make, client, prefix):
    store = make()
    await store.append("old", user("hi"))
    await client.zadd(f"{prefix}index", {"old": (datetime.now(UTC).timestamp() + 1e9) * 1e6})
    for name in ("a", "b", "a"):
        await store.append(name, user("hi"))
    assert [row.session_id for row in await store.list_sessions()] == ["a", "b", "old"]


# Round trips


async def test_an_append_is_one_command_and_one_round_trip(server, prefix):
    async with proxy(server) as between, Redis.from_url(between.url) as through:
        store = RedisSessionStore(through, prefix=prefix)
        await fill(store, 5)
        before, calls = between.requests, await calls_of(server)
        await fill(store, 30)
        assert between.requests - before == 30
        assert (await calls_of(server)) - calls == 30


async def calls_of(url: str) -> int:
    """How many scripts clients have sent to the server so far."""
    async with Redis.from_url(url) as client:
        return int((await client.info("commandstats"))["cmdstat_evalsha"]["calls"])


async def test_a_fold_is_one_round_trip_more(server, prefix):
    async with proxy(server) as between, Redis.from_url(between.url) as through:
        store = RedisSessionStore(through, prefix=prefix, summarizer=lambda span: "summary", policy=CountPolicy(4, 2))
        await fill(store, 9)  # the server has seen both scripts
        await store.clear("s")
        await fill(store, 4)
        before = between.requests
        await fill(store, 1)
        assert between.requests - before == 2


async def test_a_server_that_has_forgotten_the_scripts_gets_them_again(make, client):
    store = make(summarizer=lambda span: "summary", policy=CountPolicy(4, 2))
    for _ in range(7):
        await client.script_flush()
        await fill(store, 1)
    assert [is_summary(turn) for turn in await store.get_history("s")] == [True, False, False]


@pytest.mark.parametrize("turns", [1, 40])
async def test_an_append_whose_answer_was_lost_is_sent_again_and_stored_once(server, prefix, turns):
    async with proxy(server) as between:
        store = RedisSessionStore.from_url(between.url, prefix=prefix)
        await fill(store, 1)
        for i in range(1, turns + 1):
            between.lose_next_reply = True
            await store.append("s", user(f"turn {i}"))
            assert between.lose_next_reply is False, "the test lost no answer"
        history = [turn.content for turn in await store.get_history("s")]
        assert history == [f"turn {i}" for i in range(turns + 1)][-len(history) :]
        assert len(history) == (2 if turns == 1 else 20)
        await store.close()


async def test_a_server_that_takes_the_connection_and_never_answers_is_an_error_that_names_it(
    server, prefix, monkeypatch
):
    monkeypatch.setattr("tri_memory.engines.redis_client.ANSWER_WITHIN_S", 0.3)
    async with proxy(server) as between:
        between.silent = True
        store = RedisSessionStore.from_url(between.url, prefix=prefix)
        for call in (
            lambda: store.append("s", user("hi")),
            lambda: store.get_history("s"),
            lambda: store.list_sessions(),
            lambda: store.clear("s"),
        ):
            with pytest.raises(ConnectionError, match=r"Redis at redis://:\.\.\.@127\.0\.0\.1") as raised:
                await asyncio.wait_for(call(), 10)
            assert server.partition("//:")[2].partition("@")[0] not in str(raised.value)
        await store.close()


async def test_more_calls_at_once_than_connections_wait_for_one(server, prefix):
    async with RedisSessionStore.from_url(server, prefix=prefix, policy=CountPolicy(1_000, 10)) as store:
        await asyncio.gather(*(store.append("s", user(f"turn {i}")) for i in range(400)))
        assert {turn.content for turn in await store.get_history("s")} == {f"turn {i}" for i in range(400)}


async def test_a_clients_own_pool_that_is_full_is_an_error_that_says_so(server, prefix):
    async with Redis.from_url(server, max_connections=2) as narrow:
        store = RedisSessionStore(narrow, prefix=prefix)
        with pytest.raises(ConnectionError, match=r"all connections .* are in use; give it a BlockingConnectionPool"):
            await asyncio.gather(*(store.append("s", user("hi")) for _ in range(20)))


# Folds by several


async def test_two_workers_a_short_lock_and_a_slow_summary_make_one_summary_and_lose_nothing(make):
    async def slow(span: tuple[ChatTurn, ...]) -> str:
        await asyncio.sleep(0.5)
        return f"{sum(not is_summary(turn) for turn in span)} turns"

    workers = [make(summarizer=slow, lock_s=0.1) for _ in range(2)]
    await fill(workers[0], 40)

    async def write(worker: RedisSessionStore, name: str) -> None:
        for i in range(12):
            await worker.append("s", user(f"{name} {i}"))
            await asyncio.sleep(0.02)

    await asyncio.gather(write(workers[0], "a"), write(workers[1], "b"))
    history = await workers[0].get_history("s")
    assert [i for i, turn in enumerate(history) if is_summary(turn)] == [0]
    folded = sum(record.turns for worker in workers for record in worker.trace if record.outcome == "folded")
    assert folded + len(history) - 1 == 64
    said = [turn.content for turn in history[1:]]
    assert said[-24:] == [text for text in said if text[0] in "ab"][-24:]


async def test_a_lock_spares_the_second_worker_the_cost_of_a_summary(make):
    calls = []

    async def slow(span: tuple[ChatTurn, ...]) -> str:
        calls.append(span)
        await asyncio.sleep(0.2)
        return "summary"

    workers = [make(summarizer=slow) for _ in range(3)]
    await fill(workers[0], 40)
    await asyncio.gather(*(worker.append("s", user("x")) for worker in workers))
    assert len(calls) == 1
    assert len(await workers[0].get_history("s")) == 23


async def test_a_session_that_another_policy_weighed_is_weighed_anew(make):
    by_count = make(policy=CountPolicy(1_000, 10))
    await fill(by_count, 30)
    by_tokens = make(policy=TokenWatermark(100, count=len), summarizer=lambda span: "short")
    await by_tokens.append("s", user("x"))
    assert sum(len(turn.content) for turn in await by_tokens.get_history("s")) <= 50
    await fill(by_count, 5)
    assert len(await by_count.get_history("s")) < 15


async def test_a_key_of_another_type_is_an_error_and_not_overwritten(make, client, prefix):
    from redis.exceptions import ResponseError

    await client.set(f"{prefix}{{s}}", "somebody else's")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        await make().append("s", user("hi"))
    assert await client.get(f"{prefix}{{s}}") == "somebody else's"


# Loops, and what is missing


def test_a_store_from_a_url_works_on_every_loop(server, prefix):
    store = RedisSessionStore.from_url(server, prefix=prefix)

    async def here(text: str) -> None:
        await store.append("s", user(text))
        await store.close()

    asyncio.run(here("one loop"))
    blocking(store).append("s", user("a thread's loop"))
    asyncio.run(here("another loop"))
    said = [turn.content for turn in blocking(store).get_history("s")]
    assert said == ["one loop", "a thread's loop", "another loop"]
    blocking(store).close()


def test_a_client_on_another_loop_than_its_own_is_a_clear_error(server, prefix):
    async def go() -> None:
        async with Redis.from_url(server) as client:
            store = RedisSessionStore(client, prefix=prefix)
            await store.append("s", user("hi"))
            with pytest.raises(RuntimeError, match=r"another event loop; a store that is made with from_url\(url\)"):
                await asyncio.to_thread(asyncio.run, store.append("s", user("ho")))

    asyncio.run(go())


@pytest.mark.parametrize("url", ["http://127.0.0.1", "127.0.0.1:6379", ""])
def test_what_is_no_redis_url_is_refused_at_once(url):
    with pytest.raises(ValueError, match="redis://"):
        RedisSessionStore.from_url(url)


def test_fakeredis_without_its_lua_extra_says_what_to_install():
    code = (
        "import sys; sys.modules['lupa'] = None\n"
        "import asyncio, fakeredis\n"
        "from tri_memory import ChatTurn, RedisSessionStore\n"
        "asyncio.run(RedisSessionStore(fakeredis.FakeAsyncRedis()).append('s', ChatTurn('user', 'hi')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "pip install 'fakeredis[lua]'" in done.stderr.splitlines()[-1]


def test_the_scripts_are_known_by_their_digest(server):
    import redis

    with redis.Redis.from_url(server, decode_responses=True) as client:
        assert client.script_load(APPEND.text) == APPEND.sha
