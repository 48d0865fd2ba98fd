"""Answers to 12-2: a cache that nobody listens at, that never answers, that is cut off and comes back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from redis.exceptions import ConnectionError as RedisDown

from tri_memory.engines.port import free_port
from tri_memory.lab.chapters.ch12 import place
from tri_memory.lab.exercises.ch12_phones import Counting, Phones, Servers, number, plain
from tri_memory.lab.exercises.kit import Wrong

ANSWER_S = 3  # for a write and a read, whatever the cache does
BACK_S = 1.0  # after which a cache that is back has to be used; a pause after a failure may last so long


class Cut:
    """A Redis client whose every call fails while `cut`."""

    def __init__(self, client: Any) -> None:
        self._client, self.cut = client, False

    def __getattr__(self, name: str) -> Any:
        if self.cut:
            raise RedisDown("the line to Redis is cut")
        return getattr(self._client, name)


async def hold_outage(answer: Phones, its: Servers, rng: random.Random) -> None:
    """12-2."""
    await plain(answer, its, rng)
    async with place.client(f"redis://127.0.0.1:{free_port()}") as nobody:
        await _without_cache(answer, its, nobody, "Nobody listens where Redis should be")
    async with _silent() as url, place.patient_client(url) as silent:
        await _without_cache(answer, its, silent, "Redis takes the connection and never answers")
    await _cut_and_back(answer, its, rng)
    await _nothing_made_up(answer, its)


async def _without_cache(answer: Phones, its: Servers, cache: Any, what: str) -> None:
    user, phones = its.user(), answer(cache, its.book)
    try:
        async with asyncio.timeout(ANSWER_S):
            await phones.write(user, "555-0199")
            got = await phones.read(user)
    except TimeoutError:
        raise Wrong(f"It hangs. {what}: give every call to it a limit, asyncio.timeout(0.2).") from None
    except Exception as error:
        raise Wrong(f"{what}, and {type(error).__name__} comes out, though the book has the number.") from None
    if await its.book.read(user) != "555-0199":
        raise Wrong(f"A write is lost. {what}, and the book doesn't have the number either.")
    if got != "555-0199":
        raise Wrong(f"{what}, and read returns {got!r} instead of what the book has.")


async def _cut_and_back(answer: Phones, its: Servers, rng: random.Random) -> None:
    user, before, since = its.user(), f"before-{number(rng)}", f"since-{number(rng)}"
    book, line = Counting(its.book), Cut(its.cache)
    phones = answer(line, book)
    await phones.write(user, before)
    await phones.read(user)
    line.cut = True
    try:
        await phones.write(user, since)
        got = await phones.read(user)
    except Exception as error:
        raise Wrong(f"The line to Redis is cut, and {type(error).__name__} comes out.") from None
    if got != since:
        raise Wrong(f"While Redis is away, read returns {got!r} instead of what was written meanwhile.")
    line.cut = False
    for who, its_phones in (("it", phones), ("another process", answer(line, book))):
        got = await its_phones.read(user)
        if got == before:
            raise Wrong(f"Redis is back with what it had, and {who} serves the number from before the outage.")
        if got != since:
            raise Wrong(f"After the outage read returns {got!r}.")
    if await _asks_the_book(phones, book, user):
        await asyncio.sleep(BACK_S)
        await phones.read(user)  # which fills
        if await _asks_the_book(phones, book, user):
            raise Wrong(
                f"Redis has been back for {BACK_S:g} s and is not used: a read after a read asked book.read again. "
                "Whoever rests after a failure has to try again within a second."
            )


async def _asks_the_book(phones: Any, book: Counting, user: str) -> bool:
    asked = book.reads
    await phones.read(user)
    return book.reads != asked


async def _nothing_made_up(answer: Phones, its: Servers) -> None:
    """Postgres is away: that can't be hidden."""
    user, book, line = its.user(), Counting(its.book), Cut(its.cache)
    phones = answer(line, book)
    book.gone = line.cut = True
    for what, call in (("write", lambda: phones.write(user, "555-0199")), ("read", lambda: phones.read(user))):
        try:
            got = await call()
        except Exception:  # an error, whichever, is the right answer here
            continue
        if what == "write":
            raise Wrong("The book refused a write, and nothing was raised: the caller takes it for written.")
        raise Wrong(f"Neither book nor cache could answer, and read returned {got!r}, which nobody said.")


@asynccontextmanager
async def _silent() -> AsyncIterator[str]:
    """The URL of a server that reads and never answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65_536):
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
