"""One of two processes that append to one list in Redis, and fold it by writing it back or by the commit script.

Each turn is one word, and a summary is the words it stands for. So any reader can tell what is lost.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any, Protocol

from redis import asyncio as aioredis

from tri_memory.contracts import ChatTurn
from tri_memory.session.compression import CountPolicy
from tri_memory.session.redis import RedisSessionStore
from tri_memory.summary import is_summary, summary_text

AFTER, KEEP = 40, 20
TURNS = 60  # of each process
GATE_S = 10.0  # how long one process waits for the other
LIFE_S = 120


class Writer(Protocol):
    summaries: int

    async def append(self, word: str) -> None: ...

    async def words(self) -> list[str]:
        """All that is stored, literally or in the summary."""

    async def close(self) -> None: ...


class Rewriter:
    """Push. Past 40, read all, summarise, DEL, push the summary and the last 20."""

    transaction = False

    def __init__(self, url: str, key: str, summary_s: float) -> None:
        self.client: Any = aioredis.Redis.from_url(url, decode_responses=True, socket_timeout=5)
        self.key, self.summary_s, self.summaries = key, summary_s, 0

    async def append(self, word: str) -> None:
        await self.client.rpush(self.key, word)
        turns = await self.client.lrange(self.key, 0, -1)
        if len(turns) > AFTER:
            self.summaries += 1
            await asyncio.sleep(self.summary_s)
            async with self.client.pipeline(transaction=self.transaction) as pipe:
                pipe.delete(self.key)
                pipe.rpush(self.key, " ".join(turns[:-KEEP]), *turns[-KEEP:])
                pipe.expire(self.key, LIFE_S)
                await pipe.execute()

    async def words(self) -> list[str]:
        return " ".join(await self.client.lrange(self.key, 0, -1)).split()

    async def close(self) -> None:
        await self.client.aclose()


class RewriterInMulti(Rewriter):
    """The same, with DEL and the push in one MULTI … EXEC. The reading stays outside: it is needed before."""

    transaction = True


class Committer:
    """The package's own store."""

    def __init__(self, url: str, key: str, summary_s: float) -> None:
        async def summarize(span: Sequence[ChatTurn]) -> str:
            self.summaries += 1
            await asyncio.sleep(summary_s)
            return " ".join(_words(span))

        self.summaries = 0
        self.store = RedisSessionStore.from_url(
            url, prefix=key, policy=CountPolicy(AFTER, KEEP), summarizer=summarize, ttl_s=LIFE_S
        )

    async def append(self, word: str) -> None:
        await self.store.append("desk", ChatTurn("user", word))

    async def words(self) -> list[str]:
        return _words(await self.store.get_history("desk"))

    async def close(self) -> None:
        await self.store.close()


WRITERS: dict[str, type[Rewriter] | type[Committer]] = {
    "write back": Rewriter,
    "write back in MULTI": RewriterInMulti,
    "commit script": Committer,
}


def _words(turns: Sequence[ChatTurn]) -> list[str]:
    return " ".join(summary_text(turn) if is_summary(turn) else turn.content for turn in turns).split()


async def write_all(request: dict[str, Any]) -> str:
    """One process's part: for each writer and seed wait for the other process, then append 60 words. JSON of counts."""
    counts = []
    client = aioredis.Redis.from_url(request["url"], socket_timeout=5)
    for name, seed in request["runs"]:
        key = where(request["prefix"], name, seed)
        await both_are_here(client, f"{key}gate")
        writer = WRITERS[name](request["url"], key, request["summary_s"])
        gaps = random.Random(f"{seed} {request['who']}")
        async with asyncio.TaskGroup() as appends:
            for i in range(TURNS):
                appends.create_task(writer.append(f"{request['who']}{i}"))
                await asyncio.sleep(request["gap_s"] * gaps.uniform(0, 2))
        counts.append(writer.summaries)
        await writer.close()
    await client.aclose()
    return json.dumps(counts)


async def both_are_here(client: Any, gate: str) -> None:
    await client.incr(gate)
    await client.expire(gate, LIFE_S)
    for _ in range(round(GATE_S / 0.002)):
        if int(await client.get(gate)) == 2:
            return
        await asyncio.sleep(0.002)
    raise TimeoutError(f"the other writing process had not come after {GATE_S:.0f} s")


def where(prefix: str, name: str, seed: int) -> str:
    """The beginning of the keys of one writer and seed."""
    return f"{prefix}{name.replace(' ', '-')}:{seed}:"
