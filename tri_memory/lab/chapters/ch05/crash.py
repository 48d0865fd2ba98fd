"""Kill the server while turns arrive. What was confirmed, what is there afterwards, what is there twice."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from uuid import uuid4

from tri_memory.contracts import ChatTurn
from tri_memory.engines import Engine
from tri_memory.session.compression import CountPolicy
from tri_memory.session.redis import RedisSessionStore

UNFOLDED = CountPolicy(compress_after=100_000, keep_recent=20)
DOWN_S = 0.2
LIFE_S = 300


@dataclass(frozen=True)
class Aftermath:
    """`refused` appends raised, so nobody was told that they are stored. `longest_s` is the longest append."""

    sent: int
    refused: int
    missing: tuple[str, ...]
    twice: tuple[str, ...]
    crashes: int
    longest_s: float


async def append_through_crashes(
    engine: Engine, prefix: str, *, crashes: int = 2, sessions: int = 4, gap_s: float = 0.004
) -> Aftermath:
    """Some sessions append, one turn after the other, while the server is killed (kill -9) and started `crashes` times.

    `engine` must be an embedded one that nobody else uses. Starting it is what takes time, about a second each.
    """
    ids = [f"{uuid4().hex[:6]} {n}" for n in range(sessions)]
    over = asyncio.Event()
    waits: list[float] = []
    confirmed: list[str] = []
    refused: list[str] = []

    async with RedisSessionStore.from_url(engine.url, prefix=prefix, policy=UNFOLDED, ttl_s=LIFE_S) as store:

        async def talk(session_id: str) -> None:
            number = 0
            while not over.is_set():
                number += 1
                word, started = f"{session_id}/{number}", time.perf_counter()
                try:
                    await store.append(session_id, ChatTurn("user", word))
                    confirmed.append(word)
                except ConnectionError:
                    refused.append(word)
                waits.append(time.perf_counter() - started)
                await asyncio.sleep(gap_s)

        async def crash() -> None:
            for _ in range(crashes):
                await asyncio.sleep(0.3)
                await asyncio.to_thread(engine.kill)
                await asyncio.sleep(DOWN_S)
                await asyncio.to_thread(engine.start)
            await asyncio.sleep(0.3)

        talks = [asyncio.ensure_future(talk(session_id)) for session_id in ids]
        try:
            await crash()
        finally:
            over.set()
            await asyncio.gather(*talks)
        there = Counter([turn.content for session_id in ids for turn in await store.get_history(session_id)])
        for session_id in ids:
            await store.clear(session_id)
    missing = tuple(word for word in confirmed if not there[word])
    twice = tuple(word for word, times in there.items() if times > 1)
    return Aftermath(len(confirmed) + len(refused), len(refused), missing, twice, crashes, max(waits))
