"""What is known of a user for long: who they are, what they like, their cases and their devices.

One record for each user, type and entity. The record, the contract of a store of records, and what its engines do
alike: what they refuse, which of two statements stands, and what may not come back after a user was forgotten.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from tri_memory.clock import Clock, utc_now
from tri_memory.contracts import as_utc, require_count, require_text, shown
from tri_memory.entity.content import contains as holds
from tri_memory.entity.content import from_text, sessions_of, to_text

MemoryType = Literal["identity", "preference", "case", "device"]
MEMORY_TYPES: tuple[str, ...] = get_args(MemoryType)

LONGEST_ID = 256  # characters; two of them fit into one entry of a Postgres index


class Forgotten(RuntimeError):
    """What was to be written was said before the user was forgotten, or before that record was put away."""


@dataclass(frozen=True, slots=True)
class UserMemory:
    """One record. `content` is a JSON object, a copy of the caller's own, keys in order.

    `created_at` is when the user first said something about the entity, `updated_at` when they said what stands now
    (of an inactive record: when it became inactive). Both are aware, in UTC. `relevance_score` is 0 to 1.
    """

    user_id: str
    memory_type: MemoryType
    entity_id: str
    content: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    relevance_score: float = 1.0
    is_active: bool = True

    def __post_init__(self) -> None:
        require_type(self.memory_type)
        object.__setattr__(self, "created_at", as_utc("created_at", self.created_at))
        object.__setattr__(self, "updated_at", as_utc("updated_at", self.updated_at))


@runtime_checkable
class UserMemoryStore(Protocol):
    """A user's records. Every call needs the user's id, which is taken to the letter, as the other stores take it;
    an entity's id is trimmed and NFC.

    Times are compared, so the clocks of the machines that share a store should agree. What was said at a time that the
    store's clock hasn't reached counts as said now.
    """

    async def put(
        self,
        user_id: str,
        memory_type: MemoryType,
        entity_id: str,
        content: Mapping[str, Any],
        *,
        began_at: datetime | None = None,
    ) -> UserMemory:
        """Write, or replace the whole content and keep `created_at`; the record that stands now.

        `began_at` is when it was said, for what waits in a queue; without it, the call's beginning, which a task that
        was only created has not reached. The newer statement stands, whichever is written first. Raises Forgotten, and
        writes nothing, where it was said before `forget`.
        ValueError for ids that are blank or longer than 256 characters, and content that is no JSON object, has a NaN,
        NUL or lone surrogate in it, is larger than 1 MB, or names the user's id as a session's.
        """

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
        """The active records that fit everything given, the newest `updated_at` first, of equals the newest record.

        `since` is inclusive. `contains` is a part of the content: of an object these keys with values that contain
        these, of a list these elements in any order.
        """

    async def version(self, user_id: str) -> int:
        """A number that this user never had before the last write, `deactivate` or `forget`; 0 for an unknown user."""

    async def deactivate(self, user_id: str) -> int:
        """Never find what there is of this user again; how many records that were."""

    async def purge(self, before: datetime) -> int:
        """Delete for good what has been inactive since before that time, of all users; how many records that were.

        Who was forgotten before that time is then unknown here, so what was said before `forget` could be written
        again: purge later than the longest time that a queue keeps a job.
        """

    async def forget(self, user_id: str) -> int:
        """`deactivate`, and nothing that was said before can be written any more; how many records were active."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `find` looks for, checked."""

    user_id: str
    memory_type: str | None
    entity_ids: frozenset[str] | None
    since: datetime | None
    contains: dict[str, Any] | None
    limit: int

    def fits(self, record: UserMemory) -> bool:
        """Whether that record is to be found, if it is active."""
        return (
            self.memory_type in (None, record.memory_type)
            and (self.entity_ids is None or record.entity_id in self.entity_ids)
            and (self.since is None or record.updated_at >= self.since)
            and (self.contains is None or holds(record.content, self.contains))
        )


def wanted(
    user_id: str,
    memory_type: str | None,
    entity_ids: Iterable[str] | None,
    since: datetime | None,
    contains: Mapping[str, Any] | None,
    limit: int,
) -> Wanted:
    if isinstance(entity_ids, str):
        raise ValueError(f"entity_ids must be several ids; got the string {shown(entity_ids)}: write [entity_id]")
    return Wanted(
        require_user(user_id),
        None if memory_type is None else require_type(memory_type),
        None if entity_ids is None else frozenset(tidy_entity(each) for each in entity_ids),
        None if since is None else as_utc("since", since),
        None if contains is None else from_text(to_text("contains", contains)),
        require_count("limit", limit, least=1),
    )


def statement(
    user_id: str, memory_type: MemoryType, entity_id: str, content: Any, began_at: datetime | None, clock: Clock
) -> UserMemory:
    """The record that `put` would write, if there were none yet; ValueError for what no engine may store."""
    now = utc_now(clock)
    said = now if began_at is None else min(as_utc("began_at", began_at), now)
    kept = from_text(to_text("content", content))
    user_id, entity_id = require_user(user_id), tidy_entity(entity_id)
    if user_id in sessions_of(kept):
        raise ValueError("user_id is the id of a session that the content names; a session's id is never a user's")
    return UserMemory(user_id, memory_type, entity_id, kept, created_at=said, updated_at=said)


def refuse_forgotten(new: UserMemory, forgotten_at: datetime | None, queued: bool) -> None:
    """Forgotten where `new` was said before. At the same microsecond: a queued job was, a call that began then not."""
    if forgotten_at is None:
        return
    if new.updated_at < forgotten_at or (queued and new.updated_at == forgotten_at):
        raise Forgotten("this was said before its user was forgotten, so it is not written; drop the job")


def standing(new: UserMemory, kept: UserMemory | None, now: datetime) -> UserMemory:
    """Which of the two is to be kept. A kept time that the clock has not reached (it was put back) says nothing."""
    if kept is None:
        return new
    if new.updated_at < kept.updated_at <= now:
        if not kept.is_active:
            raise Forgotten("this was said before its record was put away, so it is not written; drop the job")
        return kept
    return replace(new, created_at=kept.created_at) if kept.is_active else new


def require_user(value: Any) -> str:
    return _not_too_long("user_id", require_text("user_id", value))


def tidy_entity(value: Any) -> str:
    tidy = unicodedata.normalize("NFC", require_text("entity_id", value).strip())
    return _not_too_long("entity_id", tidy)


def _not_too_long(name: str, value: str) -> str:
    if len(value) > LONGEST_ID:
        raise ValueError(f"{name} must have at most {LONGEST_ID} characters; got {len(value):,}")
    return value


def require_type(value: Any) -> Any:
    if not (isinstance(value, str) and value in MEMORY_TYPES):
        raise ValueError(f"memory_type must be one of {', '.join(MEMORY_TYPES)}; got {shown(value)}")
    return value
