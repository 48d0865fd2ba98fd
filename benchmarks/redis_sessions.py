"""What an append to Redis costs beside the least that it takes on the same server: one pipeline of RPUSH and EXPIRE."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from uuid import uuid4

from redis.asyncio import Redis

from benchmarks.timing import Row, paired
from tri_memory import ChatTurn, CountPolicy, RedisSessionStore, engines

TURNS = 200
TEXTS = [f"message number {i} about order {i * 7 % 997}" for i in range(TURNS)]
MANY = CountPolicy(10**7, 10)  # folds would be ours alone


def rows() -> Iterator[Row]:
    with engines.redis() as server, asyncio.Runner() as runner:
        ours = _ours(runner, server.url)
        where = f"append, Redis ({server.how})"
        yield paired(where, ours, "bare RPUSH + EXPIRE", _bare(runner, server.url), units=TURNS, rounds=25, goal=1.3)
        for name, theirs in _peers(runner, server.url):
            yield paired(where, ours, name, theirs, units=TURNS, goal=1.0)


def _ours(runner: asyncio.Runner, url: str) -> Callable[[], object]:
    store = RedisSessionStore.from_url(url, policy=MANY, prefix=f"bench:{uuid4().hex}:")

    async def go() -> None:
        for text in TEXTS:
            await store.append("s", ChatTurn("user", text))

    return lambda: runner.run(go())


def _bare(runner: asyncio.Runner, url: str) -> Callable[[], object]:
    client = Redis.from_url(url)
    key = f"bench:{uuid4().hex}"

    async def go() -> None:
        for text in TEXTS:
            async with client.pipeline(transaction=False) as pipe:
                await pipe.rpush(key, ChatTurn("user", text).to_json()).expire(key, 86_400).execute()

    return lambda: runner.run(go())


def _peers(runner: asyncio.Runner, url: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Those that are installed (`benchmarks/peers.txt`). langchain-redis asks for the module RediSearch, which only
    Redis' own builds of Redis 8 have; the other two need no module."""
    for name, make in (
        ("OpenAI Agents RedisSession", _openai_agents),
        ("langchain-community RedisChatMessageHistory", _langchain_community),
        ("langchain-redis RedisChatMessageHistory", _langchain_redis),
    ):
        try:
            once = make(url)
            runner.run(once("a first message, which may create what is missing"))
        except ImportError:
            continue
        except Exception as error:
            print(f"{name} does not run on this server: {str(error).splitlines()[0][:100]}")
            continue

        async def go(once: Callable[[str], Awaitable[Any]] = once) -> None:
            for text in TEXTS:
                await once(text)

        yield name, lambda go=go: runner.run(go())  # type: ignore[misc]


def _openai_agents(url: str) -> Callable[[str], Awaitable[Any]]:
    from agents.extensions.memory import RedisSession

    session = RedisSession.from_url(f"bench-{uuid4().hex}", url=url, ttl=86_400)
    return lambda text: session.add_items([{"role": "user", "content": text}])


def _langchain_community(url: str) -> Callable[[str], Awaitable[Any]]:
    from langchain_community.chat_message_histories import RedisChatMessageHistory
    from langchain_core.messages import HumanMessage

    history = RedisChatMessageHistory(f"bench-{uuid4().hex}", url=url, ttl=86_400)

    async def once(text: str) -> None:
        history.add_message(HumanMessage(text))

    return once


def _langchain_redis(url: str) -> Callable[[str], Awaitable[Any]]:
    from langchain_core.messages import HumanMessage
    from langchain_redis import RedisChatMessageHistory

    history = RedisChatMessageHistory(f"bench-{uuid4().hex}", redis_url=url, ttl=86_400)

    async def once(text: str) -> None:
        history.add_message(HumanMessage(text))

    return once
