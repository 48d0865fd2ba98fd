"""A shop's assistant with ten places in which a user's words stand: three servers' worth of memory, and its by-ways.

One shopper of the kit is played through it, under an id of this call's own and with an order number that nobody else
has, so that whatever a hunt finds is what was planted here.
"""

from __future__ import annotations

import io
import json
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

from redis.asyncio import Redis

from tri_memory import PgVectorEpisodicStore, PostgresPreferenceStore, RedisSessionStore
from tri_memory.agent.chat import Chat
from tri_memory.agent.trace import TurnTrace
from tri_memory.clock import ManualClock, system_clock
from tri_memory.embedding.hashing import HashingEmbedder
from tri_memory.engines.postgres_connection import connect
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.extract import extract
from tri_memory.entity.graph import EntityGraph
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.entity.short_context import RedisShortContext
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch11.tables import drop
from tri_memory.privacy.forget import Stores
from tri_memory.privacy.hunt import hunt_postgres, hunt_redis
from tri_memory.privacy.jobs import Jobs
from tri_memory.privacy.log_filter import MaskIds
from tri_memory.privacy.pseudonyms import Pseudonyms
from tri_memory.privacy.tombstones import InMemoryTombstones

SHOPPERS = {
    "en": ("en-shop-01", "BX-2207", "What about order {}?"),
    "zh": ("zh-shop-01", "ZB-2207", "订单{}怎么样了？"),
}
NAMES = {"en": "Maeve Tolliver", "zh": "林晓蓓"}
TABLES = {"user_memory": "records", "preferences": "preferences", "episodes": "episodes"}  # in Postgres: the place
KEYS = {"sessions": "s:", "cache": "m:", "short context": "c:"}  # in Redis: the place, and how its keys begin
PLACES = ("sessions", *TABLES.values(), "cache", "short context", "graph", "queue", "trace", "log")


@dataclass
class House:
    """What the application has, and the one user whose `canary`, an order number, is hunted."""

    language: str
    user: str
    canary: str
    urls: tuple[str, str]
    table: str
    prefix: str
    stores: Stores
    jobs: Jobs
    tombstones: InMemoryTombstones
    names: Pseudonyms
    chat: Chat
    log: io.StringIO = field(default_factory=io.StringIO)
    trace: list[TurnTrace] = field(default_factory=list)

    async def hunt(self, text: str | None = None) -> dict[str, int]:
        """In how many rows, keys, nodes, jobs, turns and lines `text` stands, by place; None for the canary. It reads
        the servers' tables and keys itself, and asks the graph and the queue, which are in this process."""
        text, (redis_url, postgres_url) = text or self.canary, self.urls
        rows = await hunt_postgres(postgres_url, [text])
        found = {place: rows.get(f"public.{self.table}_{name}", 0) for name, place in TABLES.items()}
        for place, begin in KEYS.items():
            keys = await hunt_redis(redis_url, [text], match=f"{self.prefix}{begin}*")
            found[place] = keys.get("keys", 0)
        graph = self.stores.graph
        found["graph"] = 0 if graph is None else sum(text in node.value for node in graph.of(self.user))
        found["queue"] = await self.jobs.find(self.user, text)
        found["trace"] = sum(text in one.to_json() for one in self.trace)
        found["log"] = sum(text in line for line in self.log.getvalue().splitlines())
        return {place: found[place] for place in PLACES}

    async def delete_from_one_table(self) -> int:
        """What somebody does who knows of one table."""
        async with await connect(self.urls[1]) as connection:
            done = await connection.execute(f"DELETE FROM {self.table}_user_memory WHERE user_id = %s", [self.user])
            return done.rowcount


@asynccontextmanager
async def house(redis_url: str, postgres_url: str, language: str, *, masked: bool = False) -> AsyncIterator[House]:
    """The house of one shopper, "en" or "zh", who has been there; nothing of it is left afterwards. `masked`: no raw
    id gets into the log."""
    run, (_, old, _) = uuid4().hex, SHOPPERS[language]
    table, prefix, user = f"lesson_{run[:16]}", f"lesson:{run}:", f"{SHOPPERS[language][0]}-{run[:8]}"
    canary = f"{old[:2]}-{100_000 + secrets.randbelow(900_000)}"
    tombstones, names, embedder = InMemoryTombstones(), Pseudonyms(secrets.token_bytes(64)), HashingEmbedder()
    jobs, graph, trace = Jobs(tombstones), EntityGraph(), list[TurnTrace]()
    try:
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            truth = await enter(PostgresUserMemoryStore(postgres_url, table=f"{table}_user_memory"))
            cached = CachedUserMemoryStore.from_url(truth, redis_url, prefix=f"{prefix}m:", limit_s=5)
            layers = {
                "sessions": await enter(RedisSessionStore.from_url(redis_url, prefix=f"{prefix}s:")),
                "preferences": await enter(PostgresPreferenceStore(postgres_url, table=f"{table}_preferences")),
                "episodes": await enter(
                    PgVectorEpisodicStore(postgres_url, embedder.dimensions, table=f"{table}_episodes")
                ),
            }
            stores = Stores(
                **layers,
                dimensions=embedder.dimensions,
                user_memory=await enter(cached),
                short_context=await enter(RedisShortContext.from_url(redis_url, prefix=f"{prefix}c:")),
                graph=graph,
                trace=trace,
                queue=jobs,
            )
            said = datasets.load(language).of(SHOPPERS[language][0])[0].summary.replace(old, canary)
            chat = Chat(
                user, "s1", **layers, embedder=embedder, summarizer=lambda _: said, trace=trace, trace_texts=True
            )
            urls = redis_url, postgres_url
            its = House(language, user, canary, urls, table, prefix, stores, jobs, tombstones, names, chat, trace=trace)
            await _visited(its, said, masked)
            yield its
    finally:
        drop(postgres_url, table)
        await _without_keys(redis_url, prefix)


async def _visited(its: House, summary: str, masked: bool) -> None:
    """Every turn of the first visit, then the question of the second; and what a shop's program does beside it."""
    name, old, question = SHOPPERS[its.language]
    turns = datasets.load(its.language).of(name)[0].turns
    log = _logger(its, masked)
    for text in (turn.content.replace(old, its.canary) for turn in turns if turn.role == "user"):
        log.info(json.dumps({"user": its.user, "said": text}, ensure_ascii=False))
        await its.chat.say(text)
        its.stores.graph.add(extract(text), system_clock(), user_id=its.user)  # type: ignore[union-attr]
    memory, short, preferences = its.stores.user_memory, its.stores.short_context, its.stores.preferences
    assert preferences is not None
    await preferences.set(its.user, "last order", its.canary)
    await memory.put(its.user, "case", its.canary, {"said": summary})  # type: ignore[union-attr]
    await memory.find(its.user)  # type: ignore[union-attr]  # which fills the cache
    await its.chat.new("s2")
    await its.chat.say(question.format(its.canary))
    await short.put(its.user, await its.chat.history())
    its.jobs.put(its.user, f"Ask in a week about {its.canary}.", partial(preferences.set, its.user, "to do"))


def _logger(its: House, masked: bool) -> logging.Logger:
    log, handler = logging.Logger("shop"), logging.StreamHandler(its.log)
    if masked:
        handler.addFilter(MaskIds(its.names, users=[its.user]))
    log.addHandler(handler)
    return log


async def _without_keys(url: str, prefix: str) -> None:
    async with Redis.from_url(url) as client:
        keys = [key async for key in client.scan_iter(match=f"{prefix}*", count=1_000)]
        if keys:
            await client.unlink(*keys)


def later(days: float) -> ManualClock:
    """A clock that many days from now."""
    clock = ManualClock(system_clock())
    clock.advance(days=days)
    return clock
