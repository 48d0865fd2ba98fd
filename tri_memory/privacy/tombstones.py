"""Who was forgotten and when, and which writes are under way: what keeps a slow save from bringing anything back.

A write is announced before it begins and signed off when it has ended. `forget` first closes the door: from then on a
write of that user is refused, and one that is under way is waited for. Then it deletes, so that whatever a slow save
still brought is deleted too. What was read or queued before the forgetting can't be written after it, however long its
summary takes: a write is judged by when its unit of work began (`unit.py`).
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import as_utc, require_text
from tri_memory.entity.records import Forgotten
from tri_memory.privacy.pseudonyms import Pseudonyms

POLL_S = 0.02  # between two looks at the writes under way


Ending = Literal["stands", "gone", "undo"]


@dataclass(frozen=True, slots=True)
class Write:
    """A write that was announced; `forgotten_at` is when its user was last forgotten before it."""

    number: str
    user: str  # under its pseudonym
    forgotten_at: datetime | None


class Tombstones(Protocol):
    """The registry. Users stand in it under a pseudonym, since their ids are to be forgotten as well."""

    clock: Clock

    async def begin(self, user_id: str, began_at: datetime | None = None) -> Write:
        """Announce a write. `began_at` is when its unit of work began, or it was queued; None for one that begins now.
        Raises Forgotten where the user was forgotten since, or is being forgotten."""

    async def end(self, write: Write) -> Ending:
        """Sign it off. "gone": its user was forgotten meanwhile, and the forgetting deletes what was written. "undo":
        nobody waits for it any more, so whoever made it has to undo it."""

    async def shut(self, user_id: str) -> datetime:
        """Refuse this user's writes from now on; the time that counts as that of the forgetting."""

    async def under_way(self, user_id: str) -> int:
        """How many writes that began before `shut` have not ended."""

    async def reopen(self, user_id: str) -> None:
        """Let this user write again; what began before `shut` stays refused."""

    async def forgotten_at(self, user_id: str) -> datetime | None:
        """When the user was last forgotten; None for whom nothing is noted."""

    async def purge(self, before: datetime) -> int:
        """Drop the notes on who was forgotten before that time; how many. What began before the last forgetting that
        was dropped is refused from then on, whoever said it: nobody knows any more whether they were forgotten."""


@dataclass(slots=True)
class _User:
    forgotten_at: datetime | None = None
    closed: int = 0  # by so many forgettings that are not done
    writes: set[str] = field(default_factory=set)
    late: set[str] = field(default_factory=set)  # that a forgetting has stopped waiting for


class InMemoryTombstones:
    """The registry of one process. Safe for several coroutines and threads; it does not outlive the process, and stores
    that several processes write to need one that they share."""

    def __init__(self, pseudonyms: Pseudonyms | None = None, *, clock: Clock = system_clock) -> None:
        self._pseudonyms = pseudonyms or Pseudonyms(secrets.token_bytes(64))
        self.clock = clock
        self._users: dict[str, _User] = {}
        self._dropped: datetime | None = None  # the last forgetting whose note was purged
        self._lock = threading.Lock()

    async def begin(self, user_id: str, began_at: datetime | None = None) -> Write:
        began_at = None if began_at is None else as_utc("began_at", began_at)
        name = self._name(user_id)
        with self._lock:
            user = self._users.get(name) or _User()
            refuse(began_at, user.forgotten_at, user.closed > 0, self._dropped)
            write = Write(secrets.token_hex(8), name, user.forgotten_at)
            user.writes.add(write.number)
            self._users[name] = user
        return write

    async def end(self, write: Write) -> Ending:
        with self._lock:
            user = self._users[write.user]
            late = write.number in user.late
            user.writes.discard(write.number)
            user.late.discard(write.number)
            if user == _User():
                del self._users[write.user]
            if late:
                return "undo"
            return "stands" if user.forgotten_at == write.forgotten_at else "gone"

    async def shut(self, user_id: str) -> datetime:
        with self._lock:
            user = self._users.setdefault(self._name(user_id), _User())
            now = as_utc("the clock's time", self.clock())
            user.closed, user.forgotten_at = user.closed + 1, max(now, user.forgotten_at or now)
            return user.forgotten_at

    async def under_way(self, user_id: str) -> int:
        with self._lock:
            user = self._users.get(self._name(user_id))
            return len(user.writes) if user else 0

    async def reopen(self, user_id: str) -> None:
        with self._lock:
            user = self._users[self._name(user_id)]
            user.closed -= 1
            if not user.closed:
                user.late |= user.writes

    async def forgotten_at(self, user_id: str) -> datetime | None:
        with self._lock:
            user = self._users.get(self._name(user_id))
            return user.forgotten_at if user else None

    async def purge(self, before: datetime) -> int:
        before = as_utc("before", before)
        with self._lock:
            over = [
                name
                for name, user in self._users.items()
                if user.forgotten_at is not None and user.forgotten_at < before and not (user.closed or user.writes)
            ]
            dropped = [at for name in over if (at := self._users.pop(name).forgotten_at)]
            self._dropped = max([*dropped, *([self._dropped] if self._dropped else [])], default=None)
        return len(over)

    def _name(self, user_id: str) -> str:
        return self._pseudonyms.of_user(user_id)


def refuse(began_at: datetime | None, forgotten_at: datetime | None, closed: bool, dropped: datetime | None) -> None:
    """Forgotten where a write may not begin. At the same microsecond what was read or queued counts as before."""
    if closed:
        raise Forgotten("this user is being forgotten; what they say when that is done can be written again")
    if began_at is not None and forgotten_at is not None and began_at <= forgotten_at:
        raise Forgotten("this was read or said before its user was forgotten, so it is not written; drop the job")
    if began_at is not None and forgotten_at is None and dropped is not None and began_at <= dropped:
        raise Forgotten("this waited until nobody knows whether its user was forgotten since, so it is not written")


@asynccontextmanager
async def closed(tombstones: Tombstones, user_id: str) -> AsyncIterator[datetime]:
    """While a user is being forgotten: no write of theirs begins. Also where it fails or is cancelled, the door opens
    again, and what began before stays refused."""
    require_text("user_id", user_id)
    at = await tombstones.shut(user_id)
    try:
        yield at
    finally:
        await asyncio.shield(tombstones.reopen(user_id))


async def drained(tombstones: Tombstones, user_id: str, patience_s: float) -> int:
    """Wait until no earlier write of this user is under way, at most `patience_s` seconds; how many still are."""
    ends = asyncio.get_running_loop().time() + patience_s
    while left := await tombstones.under_way(user_id):
        if asyncio.get_running_loop().time() >= ends:
            return left
        await asyncio.sleep(POLL_S)
    return 0
