"""What a learner's test is run on: right versions of different kinds, and broken ones, each with a fault of its own."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from urllib.parse import quote

import numpy as np

from tri_memory import ChatTurn, CountPolicy, InMemorySessionStore
from tri_memory.recall.cosine import as_unit, top_k
from tri_memory.summary import summary_turn

Summarize = Callable[[Sequence[ChatTurn]], Awaitable[str]]
Found = list[tuple[int, float]]
Vectors = Sequence[Sequence[float]]
LIMIT, KEEP = 12, 6


# Nearest rows


def nearest_in_float32(query: Sequence[float], rows: Vectors, k: int) -> Found:
    return top_k(np.stack([as_unit(row) for row in rows]), as_unit(query), k)


def nearest_by_hand(query: Sequence[float], rows: Vectors, k: int) -> Found:
    def cosine(row: Sequence[float]) -> float:
        dot = sum(a * b for a, b in zip(query, row, strict=True))
        return dot / (math.hypot(*query) * math.hypot(*row))

    scored = [(i, cosine(row)) for i, row in enumerate(rows)]
    return sorted(scored, key=lambda pair: -pair[1])[:k]


def distances(query: Sequence[float], rows: Vectors, k: int) -> Found:
    return [(row, 1 - score) for row, score in nearest_by_hand(query, rows, k)]


def dot_products(query: Sequence[float], rows: Vectors, k: int) -> Found:
    scored = [(i, float(np.dot(query, row))) for i, row in enumerate(rows)]
    return sorted(scored, key=lambda pair: -pair[1])[:k]


def worst_first(query: Sequence[float], rows: Vectors, k: int) -> Found:
    return nearest_by_hand(query, rows, k)[::-1]


def all_of_them(query: Sequence[float], rows: Vectors, k: int) -> Found:
    return nearest_by_hand(query, rows, len(rows))


def never_negative(query: Sequence[float], rows: Vectors, k: int) -> Found:
    return [(row, abs(score)) for row, score in nearest_by_hand(query, rows, k)]


# Stores of sessions, of which one user's can be cleared


class Nested:
    def __init__(self) -> None:
        self.users: dict[str, dict[str, str]] = {}

    def add(self, user: str, session: str, text: str) -> None:
        self.users.setdefault(user, {})[session] = text

    def sessions(self, user: str) -> list[str]:
        return list(self.users.get(user, {}))

    def clear(self, user: str) -> int:
        return len(self.users.pop(user, {}))


class Quoted:
    """Keys in one dictionary, as Redis has them; a user and a session are percent-encoded."""

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}

    def part(self, text: str) -> str:
        return quote(text, safe="")

    def key(self, user: str, session: str) -> str:
        return f"{self.part(user)}:{self.part(session)}"

    def add(self, user: str, session: str, text: str) -> None:
        self.keys[self.key(user, session)] = session

    def of(self, user: str) -> list[str]:
        return [key for key in self.keys if key.startswith(f"{self.part(user)}:")]

    def sessions(self, user: str) -> list[str]:
        return [self.keys[key] for key in self.of(user)]

    def clear(self, user: str) -> int:
        gone = self.of(user)
        for key in gone:
            del self.keys[key]
        return len(gone)


class Beginning(Quoted):
    def clear(self, user: str) -> int:
        gone = [key for key in self.keys if key.startswith(self.part(user))]
        for key in gone:
            del self.keys[key]
        return len(gone)


class Unquoted(Quoted):
    def part(self, text: str) -> str:
        return text


class Pattern(Quoted):
    def key(self, user: str, session: str) -> str:
        return f"{user}\0{session}"

    def of(self, user: str) -> list[str]:
        return [key for key in self.keys if key.split("\0")[0] == user]

    def clear(self, user: str) -> int:
        gone = [key for key in self.keys if fnmatchcase(key, f"{user}\0*")]
        for key in gone:
            del self.keys[key]
        return len(gone)


class SmallLetters(Quoted):
    def part(self, text: str) -> str:
        return quote(text.lower(), safe="")


class OneOnly(Quoted):
    def clear(self, user: str) -> int:
        gone = self.of(user)[:1]
        for key in gone:
            del self.keys[key]
        return len(gone)


class Everything(Quoted):
    def clear(self, user: str) -> int:
        count = len(self.of(user))
        self.keys.clear()
        return count


# Writers of one session


class Queued:
    """One append at a time; what can't be summarised stays."""

    def __init__(self, summarize: Summarize) -> None:
        self.summarize, self.turns, self.queue = summarize, list[ChatTurn](), asyncio.Lock()

    async def append(self, turn: ChatTurn) -> None:
        async with self.queue:
            self.turns.append(turn)
            if len(self.turns) > LIMIT:
                await self.fold()

    async def fold(self) -> None:
        try:
            text = await self.summarize(self.turns[:-KEEP])
        except Exception:
            return
        self.turns = [summary_turn(text), *self.turns[-KEEP:]]

    async def history(self) -> list[ChatTurn]:
        return list(self.turns)


class Claimed:
    """The package's own store."""

    def __init__(self, summarize: Summarize) -> None:
        policy = CountPolicy(LIMIT, KEEP, hard_cap=10_000)
        self.store = InMemorySessionStore(policy=policy, summarizer=summarize, on_failure="keep")

    async def append(self, turn: ChatTurn) -> None:
        await self.store.append("desk", turn)

    async def history(self) -> list[ChatTurn]:
        return await self.store.get_history("desk")


class FoldsTwice(Queued):
    async def append(self, turn: ChatTurn) -> None:
        self.turns.append(turn)
        if len(self.turns) > LIMIT:
            await self.fold()

    async def fold(self) -> None:
        old = self.turns[:-KEEP]
        try:
            text = await self.summarize(old)
        except Exception:
            return
        del self.turns[: len(old)]
        self.turns.insert(0, summary_turn(text))


class Capped(Queued):
    async def fold(self) -> None:
        whole, self.turns = self.turns, [*self.turns[:1], *self.turns[-KEEP - 3 :]]
        before = len(self.turns)
        await super().fold()
        if len(self.turns) == before:
            self.turns = whole


class ForgetsTheOldSummary(Queued):
    async def fold(self) -> None:
        whole = self.turns
        if whole[0].role == "system":
            self.turns = whole[1:]
        before = len(self.turns)
        await super().fold()
        if len(self.turns) == before:
            self.turns = whole


class Placeholder(Queued):
    async def fold(self) -> None:
        try:
            text = await self.summarize(self.turns[:-KEEP])
        except Exception:
            text = "(no summary available)"
        self.turns = [summary_turn(text), *self.turns[-KEEP:]]


class Raises(Queued):
    async def fold(self) -> None:
        text = await self.summarize(self.turns[:-KEEP])
        self.turns = [summary_turn(text), *self.turns[-KEEP:]]
