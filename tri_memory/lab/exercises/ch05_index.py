"""Exercise 05-3's checker: an index on a real server, where somebody writes to a session at the worst moment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any
from uuid import uuid4

from redis import asyncio as aioredis
from redis.asyncio.client import Pipeline

from tri_memory.lab.exercises.kit import Wrong

LIFE_S = 60
PATIENCE_S = 10.0
_WHOLE_INDEX = ("ZRANGE", "ZREVRANGE", "ZSCAN")


class Interrupted(aioredis.Redis):
    """A client behind whose first look at `member` somebody else writes to it: `revive` is awaited, once."""

    member = ""
    revive: Callable[[], Awaitable[None]] | None = None

    async def seen(self, *commands: tuple[Any, ...]) -> None:
        looked = any(self.member in args or str(args[0]).startswith(_WHOLE_INDEX) for args in commands)
        if looked and self.revive is not None:
            revive, self.revive = self.revive, None
            await revive()

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        reply = await super().execute_command(*args, **options)
        await self.seen(args)
        return reply

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        pipe = InterruptedPipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)
        pipe.behind = self
        return pipe


class InterruptedPipeline(Pipeline):
    behind: Interrupted

    async def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        reply = await super().immediate_execute_command(*args, **options)
        await self.behind.seen(args)
        return reply

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        commands = [args for args, _ in self.command_stack]
        replies = await super().execute(raise_on_error)
        await self.behind.seen(*commands)
        return replies


async def awaited(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the learner's coroutine returns; Wrong where it is none, or doesn't end."""
    work = function(*arguments)
    if not isawaitable(work):
        raise Wrong(f"It should be an async def, to be awaited; called, it gave {work!r}.")
    try:
        return await asyncio.wait_for(work, PATIENCE_S)
    except TimeoutError:
        raise Wrong(f"It had not ended after {PATIENCE_S:.0f} s: it waits for something that never comes.") from None


async def hold_against_a_late_append(
    drop: Callable[[Any, str, list[tuple[str, float]]], Any], url: str, rng: random.Random
) -> None:
    """Wrong, with an explanation, unless `drop(client, index, seen)` removes what is as it was seen, and only that."""
    index = f"lesson:{uuid4().hex}:index"
    client: Any = Interrupted.from_url(url, decode_responses=True, socket_timeout=5)
    other: Any = aioredis.Redis.from_url(url, socket_timeout=5)
    try:
        now = 1_780_000_000_000_000 + rng.randrange(10**9)
        scores = {f"s{i}": float(now + i) for i in range(rng.randrange(6, 12))}
        seen = rng.sample(sorted(scores.items()), 4)
        await other.zadd(index, scores)
        await other.expire(index, LIFE_S)
        written_before, written_between = seen[0][0], seen[1][0]
        await other.zadd(index, {written_before: now + 5_000})

        async def revive() -> None:  # an append: the entry comes back if it has gone, with a new score
            await other.zadd(index, {written_between: now + 9_000})

        client.member, client.revive = written_between, revive
        removed = await awaited(drop, client, index, list(seen))
        left = {member.decode() for member in await other.zrange(index, 0, -1)}
        _judge(removed, left, set(scores), [member for member, _ in seen])
    finally:
        await other.delete(index)
        await other.aclose()
        await client.aclose()


def _judge(removed: Any, left: set[str], everybody: set[str], seen: list[str]) -> None:
    before, between, *ghosts = seen
    strangers = everybody - set(seen) - left
    if strangers:
        raise Wrong(f"{sorted(strangers)} were not in `seen`, and are gone from the index.")
    if left >= everybody:
        raise Wrong(
            "Nothing was removed. If a script of yours compares scores: they travel as text, ZSCORE says "
            "'1780000000000000' and Python sends '1780000000000000.0'. Use tonumber on both sides."
        )
    if before not in left:
        raise Wrong(
            f"{before} was written to after you were told its score: alive, and off the list for good. "
            "Compare the score before you remove."
        )
    if between not in left:
        raise Wrong(
            f"{between} was written to between your look and your ZREM, and fell off the list. "
            "Let one script do both, or WATCH the index."
        )
    stayed = [member for member in ghosts if member in left]
    if stayed:
        raise Wrong(f"{stayed} nobody wrote to, and they are still in the index.")
    gone = len(everybody) - len(left)
    accepted = {len(ghosts), len(ghosts) + 1}  # the one written to between may have been a ghost when it was removed
    if removed not in accepted:
        raise Wrong(f"It should return how many entries it removed, {gone}; it returned {removed!r}.")
