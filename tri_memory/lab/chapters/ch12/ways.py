"""Five ways to write a book and the cache before it, each in every order of events there is, on real servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pandas as pd

from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.records import UserMemoryStore
from tri_memory.lab.chapters.ch12.book import PhoneBook
from tri_memory.lab.chapters.ch12.stage import Actor, Play, every_order, play

OLD, NEW, NEWER = "555-0142", "555-0199", "555-0777"
TTL_S = 600

SET_FIRST, DELETE_FIRST = "set in Redis, then Postgres", "delete in Redis, then Postgres"
SET_AFTER, DELETE_AFTER = "Postgres, then set in Redis", "Postgres, then delete in Redis"
KIT = "the kit's: mark, Postgres, unmark"
NAIVE = (SET_FIRST, DELETE_FIRST, SET_AFTER, DELETE_AFTER)

Read = Callable[[Any, Any, str], Awaitable[str]]
Write = Callable[[Any, Any, str, str], Awaitable[None]]


async def read(cache: Any, book: Any, user: str) -> str:
    """The naive read-through: from the cache, else from the book and then into the cache."""
    kept: str | None = await cache.get(user)
    if kept is not None:
        return kept
    number: str = await book.read(user)
    await cache.set(user, number, ex=TTL_S)
    return number


def writing(way: str) -> Write:
    """How a naive way writes."""

    async def write(cache: Any, book: Any, user: str, number: str) -> None:
        if way == SET_FIRST:
            await cache.set(user, number, ex=TTL_S)
        if way == DELETE_FIRST:
            await cache.delete(user)
        await book.write(user, number)
        if way == SET_AFTER:
            await cache.set(user, number, ex=TTL_S)
        if way == DELETE_AFTER:
            await cache.delete(user)

    return write


@dataclass(frozen=True)
class Counted:
    """Of so many orders, in how many the number that is read afterwards is not the one in Postgres."""

    orders: int
    wrong: int

    def __str__(self) -> str:
        return f"{self.wrong} of {self.orders}"


class Refusing:
    """A book, or a store, that can be read but not written just now."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, *_: Any, **__: Any) -> None:
        raise ConnectionError("Postgres is restarting")

    put = write


class _Scenes:
    """A reader and a writer, two writers, and a write that is refused, of one way."""

    def __init__(self, way: str, cache: Any, store: UserMemoryStore) -> None:
        self.way, self.cache, self.store = way, cache, store

    async def count(self, *who: str) -> Counted:
        seen: list[bool] = []

        async def scene(order: Sequence[str]) -> Play:
            user = f"ways-{uuid4().hex}"
            book = PhoneBook(self.store)
            await book.write(user, OLD)
            actors, shared = self._actors(user, who)
            played = await play(actors, shared, order)
            for result in played.results.values():
                if isinstance(result, BaseException) and "refused" not in who:
                    raise result
            served = await self._read(user)
            seen.append(served != await book.read(user))
            await self._end(user)
            return played

        async for _ in every_order(scene):
            pass
        return Counted(len(seen), sum(seen))

    def _actors(self, user: str, who: tuple[str, ...]) -> tuple[dict[str, Actor], dict[str, Any]]:
        wrote = {"writer": NEW, "second": NEWER, "refused": NEW}
        if self.way == KIT:
            return {one: self._kit_actor(user, one, wrote.get(one)) for one in who}, {
                "Redis": self.cache,
                "Postgres": self.store,
            }
        write = writing(self.way)

        def actor(one: str) -> Actor:
            async def go(cache: Any, book: Any) -> Any:
                if one == "reader":
                    return await read(cache, book, user)
                return await write(cache, Refusing(book) if one == "refused" else book, user, wrote[one])

            return go

        return {one: actor(one) for one in who}, {"Redis": self.cache, "Postgres": PhoneBook(self.store)}

    def _kit_actor(self, user: str, one: str, number: str | None) -> Actor:
        async def go(cache: Any, store: Any) -> Any:
            book = PhoneBook(_kit(Refusing(store) if one == "refused" else store, cache))
            return await (book.read(user) if number is None else book.write(user, number))

        return go

    async def _read(self, user: str) -> str:
        if self.way == KIT:
            return await PhoneBook(_kit(self.store, self.cache)).read(user)
        return await read(self.cache, PhoneBook(self.store), user)

    async def _end(self, user: str) -> None:
        if self.way == KIT:
            await _kit(self.store, self.cache).forget(user)
        else:
            await self.cache.delete(user)
            await self.store.forget(user)


def _kit(store: Any, cache: Any) -> CachedUserMemoryStore:
    return CachedUserMemoryStore(store, cache, prefix="nb12:ways:", limit_s=10)


async def table(cache: Any, store: UserMemoryStore, ways: Sequence[str] = (*NAIVE, KIT)) -> pd.DataFrame:
    """A row a way: in how many orders something else than Postgres has is read afterwards."""
    rows = []
    for way in ways:
        scenes = _Scenes(way, cache, store)
        rows.append(
            (
                way,
                await scenes.count("reader", "writer"),
                await scenes.count("writer", "second"),
                await scenes.count("refused"),
            )
        )
    names = ["way to write", "a reader and a writer", "two writers", "a write that Postgres refuses"]
    return pd.DataFrame(rows, columns=names).set_index("way to write")
