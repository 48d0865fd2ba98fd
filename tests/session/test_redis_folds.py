"""Folds in Redis that go wrong on the way: answers lost, locks run out, sessions cleared, policies changed.

Each began as a turn that was lost, doubled or folded twice.
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from redis.asyncio import Redis, RedisCluster

from tests.session.conftest import fill, user
from tests.session.proxy import proxy
from tri_memory import ChatTurn, CountPolicy, ManualClock, RedisSessionStore, TokenWatermark, engines
from tri_memory.session.folding import appends_to_skip
from tri_memory.session.redis_scripts import APPEND, COMMIT
from tri_memory.summary import is_summary, summary_text


def losing_the_commits_answer(store: RedisSessionStore, between: Any) -> None:
    """The answer to the next commit is lost on its way, once."""
    replacement = store._replacement

    async def then_lose(planned: list[ChatTurn]) -> Any:
        found = await replacement(planned)
        between.lose_next_reply = True
        store._replacement = replacement
        return found

    store._replacement = then_lose


@pytest.mark.parametrize("summary", [None, "ok"])
async def test_a_commit_whose_answer_was_lost_is_sent_again_and_made_once(server, prefix, summary):
    """All turns are alike, so that comparing them can't tell the first commit from the second."""
    async with proxy(server) as between:
        summarizer = None if summary is None else lambda span: summary
        store = RedisSessionStore.from_url(between.url, prefix=prefix, policy=CountPolicy(10, 8), summarizer=summarizer)
        for _ in range(20):
            await store.append("warm", user("ok"))
        losing_the_commits_answer(store, between)
        for _ in range(11):
            await store.append("s", user("ok"))
        assert between.lose_next_reply is False, "the test lost no answer"
        assert [record.turns for record in store.trace if record.session_id == "s"] == [3]
        assert [not is_summary(turn) for turn in await store.get_history("s")].count(True) == 8
        await store.close()


@pytest.mark.parametrize("ahead_s", [0, 90])
async def test_an_append_that_is_sent_again_after_hundreds_by_others_is_stored_once(server, prefix, ahead_s):
    """Whatever the others' clocks say."""
    async with proxy(server) as between:
        store = RedisSessionStore.from_url(between.url, prefix=prefix, policy=CountPolicy(1_000, 10))
        others = RedisSessionStore.from_url(
            server, prefix=prefix, policy=CountPolicy(1_000, 10), clock=ManualClock(store.clock())
        )
        others.clock.advance(seconds=ahead_s)
        await fill(store, 1)
        between.lose_next_reply = True
        once = asyncio.ensure_future(store.append("s", user("once")))
        await asyncio.sleep(0.02)
        assert between.lose_next_reply is False, "the test lost no answer"
        await fill(others, 400)
        await once
        said = [turn.content for turn in await store.get_history("s")]
        assert said.count("once") == 1
        assert len(said) == 402
        await store.close()
        await others.close()


async def test_two_hundred_appends_at_once_and_one_lost_answer_are_two_hundred_turns(server, prefix):
    async with proxy(server) as between:
        store = RedisSessionStore.from_url(between.url, prefix=prefix, policy=CountPolicy(1_000, 10))
        await fill(store, 1)
        between.lose_next_reply = True
        await asyncio.gather(*(store.append("s", user(f"at once {i}")) for i in range(200)))
        history = [turn.content for turn in await store.get_history("s")]
        assert sorted(history) == sorted(["turn 0", *(f"at once {i}" for i in range(200))])
        await store.close()


async def test_appends_are_known_for_a_minute_by_the_servers_clock(make, client, prefix):
    store = make()
    await fill(store, 3)
    assert await client.zcard(f"{prefix}{{s}}:seen") == 3
    for token in await client.zrange(f"{prefix}{{s}}:seen", 0, 1):
        await client.zincrby(f"{prefix}{{s}}:seen", -61e6, token)
    await fill(store, 1)
    assert await client.zcard(f"{prefix}{{s}}:seen") == 2


async def test_a_worker_whose_lock_ran_out_does_not_cut_what_another_has_cut(make):
    async def slow_and_failing(span: tuple[ChatTurn, ...]) -> str:
        await asyncio.sleep(0.4)
        raise ConnectionError("the model is down")

    slow = make(summarizer=slow_and_failing, policy=CountPolicy(10, 8), lock_s=0.05)
    quick = make(policy=CountPolicy(10, 8))
    for _ in range(10):
        await quick.append("s", user("ok"))
    stuck = asyncio.ensure_future(slow.append("s", user("ok")))
    await asyncio.sleep(0.15)
    await quick.append("s", user("ok"))
    await stuck
    cut = sum(record.turns for store in (slow, quick) for record in store.trace)
    assert cut + len(await quick.get_history("s")) == 12
    assert len(await quick.get_history("s")) >= 8


async def test_the_summary_of_a_cleared_session_does_not_come_into_one_that_begins_alike(make):
    greeting = [user(f"hello {i}") for i in range(5)]
    other = make(policy=CountPolicy(10, 8))

    async def cleared_meanwhile(span: tuple[ChatTurn, ...]) -> str:
        await other.clear("s")
        for turn in greeting:
            await other.append("s", turn)
        return "a secret of the old session"

    store = make(policy=CountPolicy(4, 2), summarizer=cleared_meanwhile)
    for turn in greeting:
        await store.append("s", turn)
    assert await other.get_history("s") == greeting
    assert not store.trace


async def test_one_turn_that_is_folded_alone_is_replaced_by_its_summary(make):
    store = make(policy=TokenWatermark(100, count=len), summarizer=lambda span: "short")
    await store.append("s", user("x" * 70))
    await store.append("s", user("y" * 10))
    assert [turn.content for turn in await store.get_history("s")] == ["[conversation summary] short", "y" * 10]


async def test_a_server_that_goes_away_during_a_fold_fails_no_append_whose_turn_is_stored(server, prefix, monkeypatch):
    monkeypatch.setattr("tri_memory.engines.redis_client.ANSWER_WITHIN_S", 0.3)
    async with proxy(server) as between:

        async def silencing(span: tuple[ChatTurn, ...]) -> str:
            between.silent = True
            return "summary"

        store = RedisSessionStore.from_url(
            between.url, prefix=prefix, policy=CountPolicy(4, 2), summarizer=silencing, lock_s=0.05
        )
        await fill(store, 5)
        between.silent = False
        assert [turn.content for turn in await store.get_history("s")] == [f"turn {i}" for i in range(5)]
        assert not store.trace
        store.summarizer = lambda span: "summary"
        await asyncio.sleep(0.1)
        await fill(store, 1, start=5)
        assert is_summary((await store.get_history("s"))[0])
        await store.close()


async def test_a_caller_that_is_cancelled_does_not_throw_the_paid_summary_away(make):
    async def slow(span: tuple[ChatTurn, ...]) -> str:
        await asyncio.sleep(0.3)
        return "paid for"

    store = make(policy=CountPolicy(4, 2), summarizer=slow)
    await fill(store, 4)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(store.append("s", user("x")), 0.15)
    await asyncio.sleep(0.5)
    assert (await store.get_history("s"))[0].content == "[conversation summary] paid for"


async def test_two_policies_in_turn_each_weigh_for_themselves(make):
    by_count = make(policy=CountPolicy(1_000, 10))
    by_tokens = make(policy=TokenWatermark(1_000, count=len))
    for _ in range(60):
        await by_count.append("s", user("x" * 50))
        await by_tokens.append("s", user("y" * 50))
    assert sum(len(turn.content) for turn in await by_tokens.get_history("s")) <= 800


async def test_two_counts_without_a_name_each_weigh_for_themselves(make):
    halves = make(policy=TokenWatermark(1_000, count=lambda text: len(text) // 2))
    wholes = make(policy=TokenWatermark(1_000, count=lambda text: len(text)))
    for _ in range(13):
        await halves.append("s", user("x" * 100))
    await wholes.append("s", user("y"))
    assert sum(len(turn.content) for turn in await wholes.get_history("s")) <= 750


@pytest.mark.parametrize("count", [lambda text: np.int64(len(text)), lambda text: len(text) / 3])
async def test_a_count_that_gives_another_kind_of_number_weighs_all_the_same(make, count):
    store = make(policy=TokenWatermark(100, count=count))
    for _ in range(40):
        await store.append("s", user("x" * 10))
    assert 3 < len(await store.get_history("s")) <= 30


async def test_a_weight_that_went_wrong_is_put_right_by_the_next_fold(make, client, prefix):
    store = make(policy=CountPolicy(4, 2), summarizer=lambda span: "summary")
    await fill(store, 3)
    await client.hset(f"{prefix}{{s}}:meta", "weight", 40)
    await fill(store, 1, start=3)
    assert int(await client.hget(f"{prefix}{{s}}:meta", "weight")) == 4
    assert len(await store.get_history("s")) == 4
    await fill(store, 1, start=4)
    assert int(await client.hget(f"{prefix}{{s}}:meta", "weight")) == 3


async def test_a_summary_that_comes_ends_the_patience_with_those_that_did_not(make, client, prefix):
    answers = iter([ConnectionError("down"), "first", ConnectionError("down"), "second"])
    calls = []

    def wavering(span: tuple[ChatTurn, ...]) -> str:
        calls.append(len(span))
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    store = make(policy=CountPolicy(4, 2), summarizer=wavering, on_failure="keep")
    await fill(store, 6)
    assert len(calls) == 2
    assert not {"failures", "skip"} & set(await client.hgetall(f"{prefix}{{s}}:meta"))
    await fill(store, 3, start=6)
    assert len(calls) == 4, "the second failure was met with the patience of the first"
    assert (appends_to_skip(1), appends_to_skip(2), appends_to_skip(10)) == (0, 1, 63)


async def test_a_list_that_somebody_deleted_begins_with_a_clean_sheet(make, client, prefix):
    store = make(policy=CountPolicy(4, 2))
    await fill(store, 4)
    await client.delete(f"{prefix}{{s}}")
    await client.hset(f"{prefix}{{s}}:meta", mapping={"failures": 3, "skip": 5})
    await fill(store, 1)
    meta = await client.hgetall(f"{prefix}{{s}}:meta")
    assert meta["weight"] == "1"
    assert not {"failures", "skip"} & set(meta)


async def test_a_commit_makes_no_key_where_the_session_has_gone(make, client, prefix):
    async def deleting(span: tuple[ChatTurn, ...]) -> str:
        await client.delete(f"{prefix}{{s}}:meta")
        return "summary"

    await fill(make(policy=CountPolicy(4, 2), summarizer=deleting), 5)
    assert not await client.exists(f"{prefix}{{s}}:meta")


async def test_clear_leaves_no_key_of_the_session(make, client, prefix):
    async def never(span: tuple[ChatTurn, ...]) -> str:
        await asyncio.sleep(3_600)
        return "too late"

    store = make(policy=CountPolicy(4, 2), summarizer=never, summary_timeout_s=0.5)
    await fill(store, 4)
    fold = asyncio.ensure_future(store.append("s", user("x")))
    await asyncio.sleep(0.2)
    assert await client.exists(f"{prefix}{{s}}:lock")
    await store.clear("s")
    assert [key async for key in client.scan_iter(match=f"{prefix}*")] == []
    await fold
    assert [key async for key in client.scan_iter(match=f"{prefix}*")] == []


async def test_a_store_with_a_shorter_life_does_not_shorten_the_index(make, client, prefix):
    await make(ttl_s=10_000).append("long", user("hi"))
    short = make(ttl_s=10)
    await fill(short, 2)
    assert await client.pttl(f"{prefix}index") > 9_000_000


async def test_an_index_that_cannot_be_touched_loses_no_turn_and_stops_no_fold(make, client, prefix):
    await client.set(f"{prefix}index", "of another type")
    store = make(policy=CountPolicy(4, 2), summarizer=lambda span: "summary")
    await fill(store, 5)
    assert len(await store.get_history("s")) == 3


async def test_a_clock_that_jumps_back_and_forth_loses_no_turn(make):
    clock = ManualClock()

    def counting(span: tuple[ChatTurn, ...]) -> str:
        return str(sum(int(summary_text(turn)) if is_summary(turn) else 1 for turn in span))

    store = make(policy=CountPolicy(8, 4), summarizer=counting, clock=clock)
    for i, jump in enumerate([5, -3_600, 60, -86_400, 1e7, -1e7] * 10):
        clock.advance(seconds=jump)
        await store.append("s", user(f"turn {i}"))
    history = await store.get_history("s")
    kept = [turn.content for turn in history[1:]]
    assert kept == [f"turn {i}" for i in range(60 - len(kept), 60)]
    assert int(summary_text(history[0])) + len(kept) == 60


# The scripts, called as a client would that lost an answer


def appending(store: RedisSessionStore, token: str) -> tuple[list[str], list[Any]]:
    return store._keys("s"), list(store._push("s", user("x"), token))


async def test_who_asks_again_is_given_the_claim_only_while_the_lock_is_its_own(make, client, prefix):
    store = make(policy=CountPolicy(4, 2))
    for i in range(4):
        keys, arguments = appending(store, f"token{i}")
        assert await client.eval(APPEND.text, 4, *keys, *arguments) is None
    keys, arguments = appending(store, "claims")
    first = await client.eval(APPEND.text, 4, *keys, *arguments)
    assert await client.eval(APPEND.text, 4, *keys, *arguments) == first
    await client.set(f"{prefix}{{s}}:lock", "somebody else")
    assert await client.eval(APPEND.text, 4, *keys, *arguments) is None
    assert await client.llen(f"{prefix}{{s}}") == 5
    commit = ["claims", "unit", 0, 0, 99, 0, "", first[2], 0, 0, 0]
    assert await client.eval(COMMIT.text, 4, *keys, *commit) == "replaced"
    assert await client.get(f"{prefix}{{s}}:lock") == "somebody else"


# Connections


async def test_a_server_that_is_away_for_two_seconds_is_waited_for(prefix):
    with engines.redis("embedded") as server:
        store = RedisSessionStore.from_url(server.url, prefix=prefix)
        await fill(store, 1)
        server.kill()
        append = asyncio.ensure_future(store.append("s", user("patient")))
        await asyncio.sleep(1.5)
        await asyncio.to_thread(server.start)
        await append
        assert [turn.content for turn in await store.get_history("s")] == ["turn 0", "patient"]
        await store.close()


async def test_silence_is_waited_for_once(server, prefix, monkeypatch):
    monkeypatch.setattr("tri_memory.engines.redis_client.ANSWER_WITHIN_S", 0.3)
    async with proxy(server) as between:
        store = RedisSessionStore.from_url(between.url, prefix=prefix)
        await fill(store, 1)
        before, between.silent = between.requests, True
        with pytest.raises(ConnectionError):
            await store.get_history("s")
        assert between.requests == before + 1
        await store.close()


async def test_close_closes_the_connections(server, prefix):
    async def connections(client: Any) -> int:
        return len(await client.client_list())

    async with Redis.from_url(server) as client:
        before = await connections(client)
        store = RedisSessionStore.from_url(server, prefix=prefix)
        await asyncio.gather(*(store.append("s", user("hi")) for _ in range(5)))
        assert await connections(client) > before
        await store.close()
        await asyncio.sleep(0.1)
        assert await connections(client) <= before


async def test_a_cluster_that_is_down_is_an_error_like_any_other(prefix, free_tcp_port):
    client = RedisCluster(host="127.0.0.1", port=free_tcp_port)
    store = RedisSessionStore(client, prefix=prefix)
    for call in (lambda: store.append("s", user("hi")), lambda: store.get_history("s")):
        with pytest.raises(ConnectionError, match="can't be reached"):
            await call()
    await client.aclose()


async def test_one_node_of_a_cluster_taken_for_a_server_says_what_to_give_instead(redis_cluster, prefix):
    async with RedisSessionStore.from_url(redis_cluster, prefix=prefix) as store:
        with pytest.raises(ValueError, match=r"redis\.asyncio\.RedisCluster"):
            await store.append("s", user("hi"))


@pytest.mark.parametrize("client", [None, "redis://127.0.0.1", object()])
def test_what_is_no_asyncio_client_is_refused_when_the_store_is_made(client):
    with pytest.raises(ValueError, match=r"client must be a redis\.asyncio\.Redis.*from_url"):
        RedisSessionStore(client)


def test_a_client_that_does_not_await_is_refused_too():
    import redis

    with pytest.raises(ValueError, match=r"client must be a redis\.asyncio\.Redis"):
        RedisSessionStore(redis.Redis())


@pytest.mark.parametrize(
    "url", ["redis://:s3cr/1@127.0.0.1/0", "redis://:s3cr@127.0.0.1:port/0", "redis://:s3cr@127.0.0.1/0?s3cr=1"]
)
def test_a_url_that_is_wrong_is_refused_without_any_part_of_its_password(url):
    with pytest.raises(ValueError, match="redis://:password@host") as raised:
        RedisSessionStore.from_url(url)
    assert "s3cr" not in str(raised.value)


@pytest.mark.parametrize("option", ["ttl_s", "lock_s"])
@pytest.mark.parametrize("seconds", [0.0004, 1e17, float("inf"), float("nan"), -1])
def test_a_life_or_a_lock_that_redis_cannot_count_is_refused(option, seconds):
    with pytest.raises(ValueError, match=option):
        RedisSessionStore(Redis(), **{option: seconds})
