"""What a user said last: the same calls on both engines, and the hour of each."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from tests.conftest import needs
from tri_memory import ChatTurn, ManualClock
from tri_memory.entity.key_names import hashed
from tri_memory.entity.short_context import InMemoryShortContext, RedisShortContext, ShortContext, digest

ANN = hashed("ann")
TURNS = [
    ChatTurn("system", "Be kind."),
    ChatTurn("user", "first"),
    ChatTurn("assistant", "second"),
    ChatTurn("user", "third\n\n  line"),
    ChatTurn("assistant", "{}", tool_name="look"),
    ChatTurn("tool", "rows", tool_name="look"),
    ChatTurn("assistant", "四"),
]
DIGEST = "assistant: second\nuser: third line\nassistant: 四"


@pytest.fixture(params=["memory", "embedded_valkey", "decoded", "container_redis", "redis_cluster"])
async def make(request):
    if request.param == "memory":
        yield InMemoryShortContext
        return
    aioredis = needs("redis", "pip install redis").asyncio
    url = request.getfixturevalue("embedded_valkey" if request.param == "decoded" else request.param)
    kind = aioredis.RedisCluster if request.param == "redis_cluster" else aioredis.Redis
    options = {"decode_responses": True} if request.param == "decoded" else {}
    prefix = f"{uuid4().hex}:"
    async with kind.from_url(url, **options) as client:
        yield lambda **settings: RedisShortContext(client, prefix=prefix, **settings)


@pytest.fixture
def context(make):
    return make()


async def test_the_last_three_turns_of_the_two_who_speak_are_kept(context):
    assert isinstance(context, ShortContext)
    await context.put("ann", TURNS)
    assert await context.get("ann") == DIGEST == digest(TURNS)


async def test_putting_again_replaces_and_nothing_said_leaves_nothing(context):
    await context.put("ann", TURNS)
    await context.put("ann", TURNS[:2])
    assert await context.get("ann") == "user: first"
    await context.put("ann", [ChatTurn("user", "  \n")])
    assert await context.get("ann") is None
    assert await context.forget("ann") == 0


async def test_forgetting_says_how_many_there_were_and_touches_nobody_else(context):
    users = ["ann", "a}b{c", "{}", "%7B", "*", "with space", "安", "ann "]
    for user in users:
        await context.put(user, [ChatTurn("user", f"I am {user!r}")])
    for user in users:
        assert await context.get(user) == f"user: I am {user!r}"
        assert [await context.forget(user), await context.forget(user)] == [1, 0]
        assert await context.get(user) is None


async def test_it_is_gone_after_its_time(make):
    context = make(ttl_s=0.05)
    await context.put("ann", TURNS)
    await asyncio.sleep(0.2)
    assert await context.get("ann") is None
    assert await context.forget("ann") == 0


@pytest.mark.parametrize("user", ["", " ", None, 7, "a\0b", "\ud83d"])
async def test_no_user_no_context(context, user):
    for call in (context.put(user, TURNS), context.get(user), context.forget(user)):
        with pytest.raises(ValueError, match="user_id"):
            await call


async def test_what_are_no_turns_is_refused_and_leaves_what_there_was(context):
    await context.put("ann", TURNS)
    with pytest.raises(ValueError, match="turns must be ChatTurns"):
        await context.put("ann", ["hello"])
    assert await context.get("ann") == DIGEST


@pytest.mark.parametrize("ttl_s", [0, -1, True, float("nan"), float("inf"), 1e12, "1"])
async def test_a_lifetime_that_is_none_is_refused(make, ttl_s):
    with pytest.raises(ValueError, match="ttl_s"):
        make(ttl_s=ttl_s)


async def test_in_memory_it_lasts_an_hour_by_the_clock_and_the_expired_go_with_the_next_put():
    clock = ManualClock()
    context = InMemoryShortContext(clock=clock)
    await context.put("ann", TURNS)
    clock.advance(seconds=3_599)
    assert await context.get("ann") == DIGEST
    clock.advance(seconds=1)
    assert await context.get("ann") is None
    await context.put("bob", TURNS)
    assert list(context._kept) == ["bob"]


async def test_in_redis_it_lasts_an_hour_by_the_servers_clock(embedded_valkey):
    aioredis = needs("redis", "pip install redis").asyncio
    prefix = f"{uuid4().hex}:"
    async with aioredis.Redis.from_url(embedded_valkey) as client:
        await RedisShortContext(client, prefix=prefix).put("ann", TURNS)
        assert timedelta(minutes=59) < timedelta(seconds=await client.ttl(f"{prefix}{{{ANN}}}")) <= timedelta(hours=1)


async def test_a_server_that_is_not_there_is_named_without_its_password():
    async with RedisShortContext.from_url("redis://:s3cret@127.0.0.1:1") as context:
        with pytest.raises(ConnectionError, match=r"127\.0\.0\.1:1") as raised:
            await context.get("ann")
        assert "s3cret" not in f"{raised.value}{context!r}"


def test_a_long_turn_is_shortened_to_two_hundred_characters():
    assert digest([ChatTurn("user", "x" * 200)]) == "user: " + "x" * 200
    assert digest([ChatTurn("user", "x" * 201)]) == "user: " + "x" * 199 + "…"
    assert digest([]) == ""
