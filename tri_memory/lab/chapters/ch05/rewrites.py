"""Two processes append to one list in Redis, and fold it: by writing it back, or by the store's commit script.

Each turn is one word, and a summary is the words it stands for. So any reader can tell what is lost.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import pandas as pd
import redis
from redis import asyncio as aioredis

from tri_memory.contracts import ChatTurn
from tri_memory.lab.chapters.ch05 import processes
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
        key = f"{request['prefix']}{name.replace(' ', '-')}:{seed}:"
        await _both_are_here(client, f"{key}gate")
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


async def _both_are_here(client: Any, gate: str) -> None:
    await client.incr(gate)
    await client.expire(gate, LIFE_S)
    for _ in range(round(GATE_S / 0.002)):
        if int(await client.get(gate)) == 2:
            return
        await asyncio.sleep(0.002)
    raise TimeoutError(f"the other writing process had not come after {GATE_S:.0f} s")


async def losses(
    url: str, prefix: str, seeds: Sequence[int], *, summary_s: float = 0.03, gap_s: float = 0.003
) -> pd.DataFrame:
    """One row a writer and seed: of 120 turns from two processes, how many are lost, how many stored twice, and how
    many summaries were written. `summary_s` and `gap_s` (mean time between two turns of a process) in seconds."""
    prefix = f"{prefix}write:{random.SystemRandom().getrandbits(32):x}:"  # a cell that is run twice begins anew
    runs = [(name, seed) for name in WRITERS for seed in seeds]
    request = {"do": "write", "url": url, "prefix": prefix, "runs": runs, "summary_s": summary_s, "gap_s": gap_s}
    reports = await asyncio.gather(*(processes.errand(request | {"who": who}) for who in "ab"))
    summaries = [sum(pair) for pair in zip(*map(json.loads, reports), strict=True)]
    rows = []
    for (name, seed), written in zip(runs, summaries, strict=True):
        reader = WRITERS[name](url, f"{prefix}{name.replace(' ', '-')}:{seed}:", 0)
        stored = Counter(await reader.words())
        await reader.close()
        sent = [f"{who}{i}" for who in "ab" for i in range(TURNS)]
        twice = sum(1 for word in sent if stored[word] > 1)
        rows.append((name, seed, sum(1 for word in sent if not stored[word]), twice, written))
    return pd.DataFrame(rows, columns=["writer", "seed", "lost", "twice", "summaries"])


def loss_table(table: pd.DataFrame) -> pd.DataFrame:
    """Least, median and most of each count, a row a writer."""
    by_writer = table.groupby("writer", sort=False)[["lost", "twice", "summaries"]]
    return by_writer.agg(lambda c: f"{c.min()} to {c.max()}" if c.min() != c.max() else f"{c.min()}")


def step_by_step(raw: redis.Redis, key: str, *, atomic: bool) -> list[tuple[str, list[str]]]:
    """One bad order, command by command: A reads, B pushes, A writes back. What the list holds after each."""
    raw.delete(key)
    raw.rpush(key, "1", "2", "3")
    story = []

    def note(what: str) -> None:
        story.append((what, [str(turn) for turn in raw.lrange(key, 0, -1)]))

    seen: Any = raw.lrange(key, 0, -1)
    note("A reads the list, and summarises 1 and 2")
    raw.rpush(key, "b")
    note("B pushes b, and is told: stored")
    with raw.pipeline(transaction=atomic) as pipe:
        pipe.delete(key)
        pipe.rpush(key, "S", *seen[2:])
        pipe.execute()
    note("A writes back: MULTI, DEL, RPUSH, EXEC" if atomic else "A writes back: DEL, RPUSH")
    raw.delete(key)
    return story
