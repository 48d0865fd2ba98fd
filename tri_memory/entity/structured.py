"""Recall by what a question names: a case number is looked up, exactly and only among the user's own records.

A vector can't tell one number from another, and the nearest record always is some record. Here an id finds its record
or nothing. Where a question names no case and no device ("like last time"), the episodes are asked instead, and what
was done is said. What it does not do: guess what was meant by an id that is nearly right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

import numpy as np

from tri_memory.clock import Clock, system_clock, utc_now
from tri_memory.contracts import EpisodicStore, Recollection, require_count, require_text, shown
from tri_memory.embedding import Embedder
from tri_memory.entity.content import sessions_of
from tri_memory.entity.extract import extract as extract_entities
from tri_memory.entity.records import MemoryType, UserMemory, UserMemoryStore, tidy_entity

TYPE_OF: dict[str, MemoryType] = {"CASE_ID": "case", "DEVICE_ID": "device"}  # an entity's kind -> what it is kept as
AMONG = 1_000  # episodes nearest to the question, among which those of a record's sessions are looked for


class Named(Protocol):
    """What a question names, as far as it is needed here."""

    @property
    def kind(self) -> str: ...

    @property
    def value(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was found, and how: `exact` by id, `episodes` by meaning, or `nothing`.

    `memories` come newest first, `episodes` nearest first. `reason` is a sentence with counts, and holds no id, so that
    it may stand in a log.
    """

    how: Literal["exact", "episodes", "nothing"]
    reason: str
    memories: tuple[UserMemory, ...] = ()
    episodes: tuple[Recollection, ...] = ()


async def structured_recall(
    question: str,
    *,
    user_id: str,
    memories: UserMemoryStore,
    episodes: EpisodicStore | None = None,
    embedder: Embedder | None = None,
    extract: Callable[[str], Iterable[Named]] = extract_entities,
    clock: Clock = system_clock,
    days: int = 7,
    k: int = 3,
) -> Recalled:
    """The user's cases and devices that the question names, of the last `days` days by `clock`, with their content and
    the episodes of the sessions that the content names (`session_id`, `session_ids`). A record is found under the
    `value` that `extract` gives, so it should be put under that, too.

    Where it names none of either, the `k` nearest episodes. Where it names some and this user has none of them,
    nothing: what is near to an id is another id. Episodes need `episodes` and `embedder`; without, they are left out.
    Those of a record's sessions are looked for among the 1,000 nearest to the question.
    Raises ValueError for a blank user, a question that is no string, and counts below 1; what store and embedder raise
    goes through.
    """
    require_text("user_id", user_id)
    if not isinstance(question, str):
        raise ValueError(f"question must be a string; got {shown(question)}")
    require_count("days", days, least=1)
    require_count("k", k, least=1)
    if (episodes is None) != (embedder is None):
        raise ValueError("episodes are recalled by an embedding: give both episodes and embedder, or neither")
    past = None if episodes is None or embedder is None else _Past(question, user_id, episodes, embedder)
    named = {(TYPE_OF[one.kind], one.value) for one in extract(question) if one.kind in TYPE_OF}
    if not named:
        return await _by_meaning(past, k)
    found = await _by_id(named, user_id, memories, _days_before(utc_now(clock), days))
    period = f"the last {days} days" if days > 1 else "the last day"
    if not found:
        return Recalled("nothing", f"of the {len(named)} named, this user has no case or device from {period}")
    reason = f"{len(found)} of the {len(named)} cases and devices named, from {period}"
    sessions = {session for one in found for session in sessions_of(one.content)}
    if not sessions or past is None:
        return Recalled("exact", reason, tuple(found))
    context = [one for one in await past.nearest(AMONG) if one.session_id in sessions]
    reason += f", with {len(context)} of the {len(sessions)} episodes they name"
    return Recalled("exact", reason, tuple(found), tuple(context))


async def _by_id(
    named: set[tuple[MemoryType, str]], user_id: str, memories: UserMemoryStore, since: datetime
) -> list[UserMemory]:
    found: list[UserMemory] = []
    for memory_type in sorted({memory_type for memory_type, _ in named}):
        ids = {tidy for kind, value in named if kind == memory_type and (tidy := _storable(value))}
        if ids:
            found += await memories.find(user_id, memory_type=memory_type, entity_ids=ids, since=since, limit=len(ids))
    return sorted(found, key=lambda one: one.updated_at, reverse=True)


async def _by_meaning(past: _Past | None, k: int) -> Recalled:
    why = "the question names no case and no device"
    if past is None:
        return Recalled("nothing", f"{why}, and no episodes were given to look in")
    found = await past.nearest(k)
    if not found:
        return Recalled("nothing", f"{why}, and no episode of this user is near to it")
    return Recalled("episodes", f"{why}: the {len(found)} nearest episodes", episodes=tuple(found))


@dataclass(frozen=True, slots=True)
class _Past:
    """One user's episodes, by their nearness to one question."""

    question: str
    user_id: str
    episodes: EpisodicStore
    embedder: Embedder

    async def nearest(self, k: int) -> list[Recollection]:
        # In a thread: a model takes long enough to be felt by every other coroutine of the loop.
        rows = np.asarray(await asyncio.to_thread(self.embedder.encode, [self.question]))
        return await self.episodes.recall(rows[0], k, user_id=self.user_id)


def _storable(value: str) -> str | None:
    """None for what no store can have, such as an id of a thousand letters: it is not found, which is no error."""
    try:
        return tidy_entity(value)
    except ValueError:
        return None


def _days_before(now: datetime, days: int) -> datetime:
    first = datetime.min.replace(tzinfo=UTC)
    return now - min(timedelta(days=min(days, timedelta.max.days)), now - first)
