"""The last three turns of a user, put by one process and taken up by another, until they expire."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tri_memory.contracts import ChatTurn
from tri_memory.entity.short_context import RedisShortContext
from tri_memory.lab.chapters.ch12 import place


async def taken_up(url: str, turns: Sequence[ChatTurn], ttl_s: float) -> dict[str, str | None]:
    """What a second store, with a client of its own, has of ann, of ben, and of ann once `ttl_s` seconds are over."""
    prefix = f"{place.prefix()}ctx:"
    async with RedisShortContext.from_url(url, prefix=prefix, ttl_s=ttl_s) as before:
        await before.put("ann", turns)
    async with RedisShortContext.from_url(url, prefix=prefix) as after:
        there = {"ann, by a second client": await after.get("ann"), "ben": await after.get("ben")}
        await asyncio.sleep(1.2 * ttl_s)
        return there | {"ann, after the TTL": await after.get("ann")}
