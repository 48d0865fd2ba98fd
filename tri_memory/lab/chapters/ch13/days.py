"""Ten places of one small application, in memory, and ten days after a user asked to be forgotten.

What the servers of the lesson do, these do as well; what time does to them (a cache that expires, a job that runs at
night, a purge) can be seen here in a moment, by a clock that is moved on by hand.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, field
from datetime import timedelta
from io import StringIO

from tri_memory import ChatTurn, InMemoryEpisodicStore, InMemoryPreferenceStore, InMemorySessionStore
from tri_memory.clock import ManualClock
from tri_memory.contracts import EpisodicRecord
from tri_memory.embedding.hashing import HashingEmbedder
from tri_memory.entity.extract import extract
from tri_memory.entity.graph import EntityGraph
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.short_context import InMemoryShortContext
from tri_memory.lab.datasets import FIRST_DAY
from tri_memory.privacy.forget import Stores, forget_user, purge
from tri_memory.privacy.guarded import guarded
from tri_memory.privacy.jobs import Jobs
from tri_memory.privacy.log_filter import MaskIds
from tri_memory.privacy.pseudonyms import Pseudonyms
from tri_memory.privacy.tombstones import InMemoryTombstones

ONE_TABLE, THREE_LAYERS, FORGET = "one table", "three layers", "forget"
WAYS = (ONE_TABLE, THREE_LAYERS, FORGET)
RAW, MASKED = "as it was said", "ids masked"
LOGS = (RAW, MASKED)
BEFORE, AFTER, LAST_DAY, JOB_ON, PURGE_ON = "before", "after", 10, 2, 8
PLACES = (
    "sessions",
    "records",
    "preferences",
    "episodes",
    "cache (1 h)",
    "short context (1 h)",
    "graph",
    "queue",
    "trace",
    "log",
)
NAMES = {
    "jobs": "queue",
    "sessions": "sessions",
    "preferences": "preferences",
    "episodes": "episodes",
    "user_memory": "records",
    "cache": "cache (1 h)",
    "short_context": "short context (1 h)",
    "graph": "graph",
    "trace": "trace",
}
HIDDEN = -1  # no call finds it any more, and it stands in the table
USER, SESSION = "ann", "ann/s1"
KEY = "0123456789abcdef" * 4  # of a lesson; a real one is no secret when it stands in a program

Found = dict[str, int]


@dataclass
class _Turn:
    """A record of a trace that was told to keep texts."""

    user: str
    said: str


@dataclass
class _House:
    """`records` are behind their cache, which is filled from them."""

    canary: str
    clock: ManualClock
    log: StringIO = field(default_factory=StringIO)
    trace: list[_Turn] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tombstones = InMemoryTombstones(Pseudonyms(KEY), clock=self.clock)
        self.jobs, self.graph = Jobs(self.tombstones), EntityGraph(self.clock)
        self.sessions, self.preferences = InMemorySessionStore(), InMemoryPreferenceStore()
        self.episodes, self.embedder = InMemoryEpisodicStore(), HashingEmbedder()
        self.records = InMemoryUserMemoryStore(clock=self.clock)
        self.cache, self.short = InMemoryShortContext(clock=self.clock), InMemoryShortContext(clock=self.clock)
        self.hidden = 0

    def stores(self) -> Stores:
        return Stores(
            sessions=self.sessions,
            preferences=self.preferences,
            episodes=self.episodes,
            dimensions=self.embedder.dimensions,
            user_memory=self.records,
            cache=self.cache,
            short_context=self.short,
            graph=self.graph,
            trace=self.trace,
            queue=self.jobs,
        )


async def lived(canary: str, way: str, log: str) -> tuple[Found, ...]:
    """Where `canary` is found before the request, after it, and at the end of each of ten days."""
    its = _House(canary, ManualClock(FIRST_DAY))
    await _said(its, log == MASKED)
    found = [await _hunt(its)]
    its.clock.advance(seconds=60)
    await _asked(its, way)
    found.append(await _hunt(its))
    for day in range(1, LAST_DAY + 1):
        its.clock.advance(days=1)
        if day == JOB_ON:
            await its.jobs.run()
        if day == PURGE_ON and way == FORGET:
            gone = await purge(stores=its.stores(), tombstones=its.tombstones, clock=its.clock)
            its.hidden -= gone["user_memory"]
        found.append(await _hunt(its))
    return tuple(found)


async def _said(its: _House, masked: bool) -> None:
    """The user says it once, and it gets into every place."""
    text, turn = its.canary, ChatTurn("user", its.canary)
    safe = guarded(its.sessions, its.tombstones)
    await safe.append(SESSION, turn)
    await its.preferences.set(USER, "allergy", text)
    await _episode(its, "s1")
    await its.records.put(USER, "case", "said", {"said": text})
    for kept in (its.cache, its.short):
        await kept.put(USER, [turn])
    its.graph.add(extract(text), its.clock(), user_id=USER)
    its.trace.append(_Turn(USER, text))
    its.jobs.put(USER, text, lambda _: _nightly(its))
    handler = logging.StreamHandler(its.log)
    if masked:
        handler.addFilter(MaskIds(Pseudonyms(KEY), users=[USER]))
    shop = logging.Logger("shop")
    shop.addHandler(handler)
    shop.info(json.dumps({"said": text}, ensure_ascii=False))


async def _episode(its: _House, session: str) -> None:
    vector = its.embedder.encode([its.canary])[0]
    record = EpisodicRecord(USER, session, its.canary, vector, its.clock())
    await guarded(its.episodes, its.tombstones).remember(record)


async def _nightly(its: _House) -> None:
    """The job: what was read for it, when it was queued, becomes an episode."""
    await _episode(its, "summed up at night")


async def _asked(its: _House, way: str) -> None:
    if way == ONE_TABLE:
        await its.records.deactivate(USER)
        await its.records.purge(its.clock() + timedelta(days=1))  # as a DELETE, which hides nothing
    elif way == THREE_LAYERS:  # as Chat.forget
        await its.sessions.clear(SESSION)
        await its.preferences.forget(USER)
        await its.episodes.forget(USER)
    else:
        receipt = await forget_user(USER, stores=its.stores(), tombstones=its.tombstones, clock=its.clock)
        its.hidden = sum(line.erased for line in receipt.lines if line.hidden_until_purge)


async def _hunt(its: _House) -> Found:
    """How many entries of each place hold a piece of the canary that says something."""
    pieces, found = pieces_of(its.canary), {}
    for holder in its.stores().all():
        counts = [await holder.find(USER, piece) or 0 for piece in pieces]
        found[NAMES[holder.name]] = max(counts)
    if its.hidden and not found["records"]:
        found["records"] = HIDDEN
    lines = its.log.getvalue().splitlines()
    escaped = [json.dumps(piece, ensure_ascii=False)[1:-1] for piece in pieces]  # as it stands in a line of JSON
    found["log"] = sum(any(piece in line for piece in escaped) for line in lines)
    return {place: found[place] for place in PLACES}


def pieces_of(canary: str) -> list[str]:
    """What of a text gives it away by itself: its ids, and what stands around them."""
    ids = [one for one in extract(canary) if one.kind != "PREFERENCE"]
    rest = canary
    for one in ids:
        rest = rest.replace(one.text, "\n")
    words = [part.strip() for part in re.split(r"[\n:：,，.。;；!！?？]+", rest)]
    return [*dict.fromkeys([canary, *(one.text for one in ids), *(one.value for one in ids), *filter(_says, words)])]


def _says(part: str) -> bool:
    """A handful of letters, or four Chinese characters."""
    return len(part) >= (4 if re.search(r"[\u4e00-\u9fff]", part) else 8)
