"""How long a write takes to be seen by somebody else: through the cache's own door, and past it."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass

from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.lab.chapters.ch12 import place
from tri_memory.lab.chapters.ch12.book import PhoneBook

GIVE_UP_S = 5.0


@dataclass(frozen=True)
class Lag:
    """`old`: answers of another reader that were old right after the write returned, of `writes`. `seconds`: how long
    after the write that reader first had the new number, of each write."""

    writes: int
    old: int
    seconds: tuple[float, ...]

    @property
    def median_s(self) -> float:
        return statistics.median(self.seconds)

    @property
    def longest_s(self) -> float:
        return max(self.seconds)


async def measure(url: str, records: PostgresUserMemoryStore, *, past: bool, check_s: float, writes: int) -> Lag:
    """One store writes (or, `past` it, somebody straight to Postgres), another one with a client of its own reads."""
    user, prefix = f"{place.prefix()}lag", f"{place.prefix()}lag:"
    old, seconds = 0, []
    writer = CachedUserMemoryStore.from_url(records, url, prefix=prefix, check_s=check_s)
    reader = CachedUserMemoryStore.from_url(records, url, prefix=prefix, check_s=check_s)
    async with writer, reader:
        write, read = PhoneBook(records if past else writer), PhoneBook(reader)
        for n in range(writes):
            await read.read(user)  # so that the entry is there
            await asyncio.sleep(check_s * (n % 4) / 4 if past else 0)  # at any time between two checks
            await write.write(user, str(n))
            returned = time.perf_counter()
            first = await read.read(user)
            old += first != str(n)
            while first != str(n):
                if time.perf_counter() - returned > GIVE_UP_S:
                    raise TimeoutError(f"the new number was not seen within {GIVE_UP_S:g} s")
                await asyncio.sleep(0.005)
                first = await read.read(user)
            seconds.append(time.perf_counter() - returned)
        await writer.forget(user)
    return Lag(writes, old, tuple(seconds))
