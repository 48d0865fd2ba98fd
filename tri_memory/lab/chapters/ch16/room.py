"""What a room of the museum has: a broken version to read, and what it and ours make of the same input."""

from __future__ import annotations

import inspect
import random
import re
import sys
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal
from uuid import uuid4

from tri_memory.lab import datasets, servers
from tri_memory.lab.chapters.ch11.tables import drop

How = Literal["broken", "ours"]


@dataclass(frozen=True)
class Outcome:
    """What came out, in words of the conversation; `lost` of `of` things went wrong, 0 where all is well."""

    came: str
    lost: int
    of: int

    def counted(self, unit: str) -> str:
        """“6 of 30 turns lost”."""
        return f"{self.lost:,} of {self.of:,} {unit}"


Show = Callable[[How, str, random.Random], Awaitable[Outcome]]


@dataclass(frozen=True)
class Exhibit:
    """One room. `show` draws an input in a language from a generator, so that both versions get the same.

    `unit` says what `lost` counts; `fault` and `ours` are read after the reader has looked; `notebook` teaches the
    idea. Where `waits`, a visit mostly sleeps, so that several can be made side by side. `set_by_hand` is the share of
    inputs that go wrong by a constant of the room's file; None where the kit's conversations or the machine decide.
    """

    name: str
    reference: str
    kind: str
    title: str
    unit: str
    notebook: str
    broken: tuple[Any, ...]
    show: Show
    fault: str
    ours: str
    waits: bool = False
    set_by_hand: float | None = None

    @property
    def source(self) -> str:
        """The broken version, as it stands in its file, below the numbers that it uses."""
        code = "\n\n".join(textwrap.dedent(inspect.getsource(part)).strip() for part in self.broken)
        known = vars(sys.modules[self.broken[0].__module__])
        used = dict.fromkeys(name for name in re.findall(r"\b[A-Z][A-Z_]+\b", code) if name in known)
        numbers = [f"{name} = {known[name]}" for name in used if isinstance(known[name], int | float)]
        return "\n".join([*numbers, code])


@cache
def kit(language: str) -> datasets.Dataset:
    return datasets.load(language)


def person(language: str, rng: random.Random) -> str:
    """One of the kit's people."""
    return rng.choice(kit(language).users())


@cache
def _own() -> str:
    return uuid4().hex[:12]


def prefix() -> str:
    """Of this kernel's keys in Redis; another one in each kernel."""
    return f"lesson:nb16:{_own()}:"


def table(name: str) -> str:
    """A table of this kernel's in Postgres."""
    return f"lesson_nb16_{_own()}_{name}"


def tidy() -> None:
    """Drop this kernel's tables. A room makes its own anew when it is visited again."""
    drop(servers.postgres().url, table(""))


def short(text: str, most: int = 60) -> str:
    """On one line, and not too long for a table."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
