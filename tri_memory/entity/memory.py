"""The record of each user in a dictionary. It does not outlive the process."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Any

from tri_memory.clock import Clock, system_clock, utc_now
from tri_memory.contracts import as_utc
from tri_memory.entity.records import (
    MemoryType,
    UserMemory,
    refuse_forgotten,
    require_user,
    standing,
    statement,
    wanted,
)


class InMemoryUserMemoryStore:
    """A `UserMemoryStore` in this process. Safe for several coroutines and threads."""

    def __init__(self, *, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._users: dict[str, _User] = {}
        self._versions, self._arrivals = count(1), count()
        self._lock = threading.Lock()

    async def put(
        self,
        user_id: str,
        memory_type: MemoryType,
        entity_id: str,
        content: Mapping[str, Any],
        *,
        began_at: datetime | None = None,
    ) -> UserMemory:
        """Write, or replace the whole content and keep `created_at`; the record that stands now."""
        new = statement(user_id, memory_type, entity_id, content, began_at, self._clock)
        with self._lock:
            user = self._users.get(new.user_id) or _User()
            refuse_forgotten(new, user.forgotten_at, queued=began_at is not None)
            place = new.memory_type, new.entity_id
            kept = user.rows.get(place)
            record = standing(new, kept.record if kept else None, utc_now(self._clock))
            user.rows[place] = _Row(kept.arrival if kept else next(self._arrivals), record)
            self._change(new.user_id, user)
            return deepcopy(record)

    async def find(
        self,
        user_id: str,
        *,
        memory_type: MemoryType | None = None,
        entity_ids: Iterable[str] | None = None,
        since: datetime | None = None,
        contains: Mapping[str, Any] | None = None,
        limit: int = 20,
    ) -> list[UserMemory]:
        """The active records that fit everything given, the newest `updated_at` first, of equals the newest record."""
        what = wanted(user_id, memory_type, entity_ids, since, contains, limit)
        with self._lock:
            user = self._users.get(what.user_id) or _User()
            found = [row for row in user.rows.values() if row.record.is_active and what.fits(row.record)]
            found.sort(key=lambda row: (row.record.updated_at, row.arrival), reverse=True)
            return [deepcopy(row.record) for row in found[: what.limit]]

    async def version(self, user_id: str) -> int:
        """A number that this user never had before the last write, `deactivate` or `forget`; 0 for an unknown user."""
        with self._lock:
            user = self._users.get(require_user(user_id))
            return user.version if user else 0

    async def deactivate(self, user_id: str) -> int:
        """Never find what there is of this user again; how many records that were."""
        with self._lock:
            return self._deactivate(require_user(user_id), utc_now(self._clock))

    async def purge(self, before: datetime) -> int:
        """Delete for good what has been inactive since before that time, of all users; how many records that were."""
        before = as_utc("before", before)
        gone = 0
        with self._lock:
            for user_id, user in list(self._users.items()):
                stay = {place: row for place, row in user.rows.items() if not _is_over(row.record, before)}
                gone += len(user.rows) - len(stay)
                user.rows = stay
                if not stay and (user.forgotten_at is None or user.forgotten_at < before):
                    del self._users[user_id]
        return gone

    async def forget(self, user_id: str) -> int:
        """`deactivate`, and nothing that was said before can be written any more; how many records were active."""
        with self._lock:
            now = utc_now(self._clock)
            active = self._deactivate(require_user(user_id), now)
            user = self._users[user_id]
            user.forgotten_at = max(now, user.forgotten_at or now)
            return active

    def _deactivate(self, user_id: str, now: datetime) -> int:
        user = self._users.get(user_id) or _User()
        active = {place: row for place, row in user.rows.items() if row.record.is_active}
        for place, row in active.items():
            user.rows[place] = replace(row, record=replace(row.record, updated_at=now, is_active=False))
        self._change(user_id, user)
        return len(active)

    def _change(self, user_id: str, user: _User) -> None:
        user.version = next(self._versions)
        self._users[user_id] = user


@dataclass(frozen=True, slots=True)
class _Row:
    arrival: int
    record: UserMemory


@dataclass(slots=True)
class _User:
    version: int = 0
    forgotten_at: datetime | None = None
    rows: dict[tuple[str, str], _Row] = field(default_factory=dict)  # by type and entity


def _is_over(record: UserMemory, before: datetime) -> bool:
    return not record.is_active and record.updated_at < before
