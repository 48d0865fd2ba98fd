"""A user's records, hot and cold: Postgres is the truth, and Redis saves asking it twice.

Keys, for the default prefix; `user` is a name for the user, by default a hash of the id, which stands in no key, and in
braces, so that all keys of a user share a hash slot. `type` is a memory type, or `any` for the records of all types.

    mem:{user}:type:version  string  all active records of that type, newest first, as JSON; `ttl_s`
    mem:{user}:version       string  the version that the truth has, or a ticket while readers ask for it; `check_s`
    mem:{user}:writing       zset    a mark for each write under way; `check_s`
    mem:{user}:index         set     the names of the user's entries; where Redis evicts it, they expire by themselves

What is guaranteed, for all writes that go through such a store:

- A read that begins after a write returned finds that write or a later one. A write marks the user in Redis before it
  goes to the truth, and until the mark is taken away nothing is served from Redis and nothing is put there.
- A writer that dies between Postgres and Redis leaves its mark standing. For `check_s` all reads of that user ask the
  truth; then one asks it for the version, and what is found under another version is not looked at.
- Where the mark could not be set (the writer did not reach Redis and other readers do), or was lost (a failover), or a
  write takes longer than `check_s` and its writer then dies, or somebody writes to Postgres past this store: what is
  served is at most `check_s` old, by Redis' clock. This process itself asks the truth until Redis knows of the write.

What it costs: two round trips to Redis for a write; for a read that hits one, or two where the version has changed
since this process last saw it; every `check_s` one question for the version; after a write two questions to the truth.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from tri_memory.clock import Clock, system_clock, utc_now
from tri_memory.engines.closing import Closing
from tri_memory.engines.redis_client import ClientPerLoop
from tri_memory.entity.cache_calls import CacheCalls, Keys, Mark, text
from tri_memory.entity.cache_entry import MOST_RECORDS, TooLarge, decoded, encoded
from tri_memory.entity.key_names import NameOf, hashed
from tri_memory.entity.records import (
    Forgotten,
    MemoryType,
    UserMemory,
    UserMemoryStore,
    require_user,
    wanted,
)

log = logging.getLogger(__name__)
T = TypeVar("T")

MOST_VERSIONS = 10_000  # users whose last version a process remembers


class CachedUserMemoryStore(Closing):
    """A `UserMemoryStore` that keeps in Redis what it read from `truth`, which it does not close.

    `client` is a `redis.asyncio.Redis` or `RedisCluster`, of the primary and used on one event loop; `from_url` makes
    one for each loop. A call to Redis is given up after `limit_s` seconds, and after a failure Redis is not asked again
    for `pause_s`: the truth is, as always. `forget` in that time leaves copies in Redis that nobody is served; this
    process deletes them when a later call reaches Redis, and they expire `ttl_s` after they were read.
    `clock` is the truth's, for when something was said; Redis lets things expire by its own. `name_of` gives a user's
    name in the keys, such as `Pseudonyms.of_user`: the same one in every process that shares this Redis.
    """

    def __init__(
        self,
        truth: UserMemoryStore,
        client: Any,
        *,
        ttl_s: float = 3_600,
        check_s: float = 60,
        limit_s: float = 0.25,
        pause_s: float = 5,
        prefix: str = "mem:",
        clock: Clock = system_clock,
        name_of: NameOf = hashed,
    ) -> None:
        limits = {"ttl_s": ttl_s, "check_s": check_s, "limit_s": limit_s, "pause_s": pause_s}
        self._calls = CacheCalls(client, **limits, prefix=prefix, name_of=name_of)
        self.truth, self.stats, self.ttl_s = truth, self._calls.stats, ttl_s
        self._clock = clock
        self._seen: dict[str, str] = {}  # user -> the version last seen, which saves a round trip
        self._owed: dict[str, object] = {}  # users of whose writes Redis may not know

    @classmethod
    def from_url(cls, truth: UserMemoryStore, url: str, **options: Any) -> CachedUserMemoryStore:
        """With a client of its own for each event loop. ValueError for what is no Redis URL."""
        return cls(truth, ClientPerLoop(url), **options)

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
        said = utc_now(self._clock)

        async def write() -> UserMemory:
            # Marking took time, in which the user may have been forgotten: the truth is to know when this was said.
            moved = began_at is None and utc_now(self._clock) != said
            return await self.truth.put(user_id, memory_type, entity_id, content, began_at=said if moved else began_at)

        return await self._write(user_id, write)

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
        records = await self._records(what.user_id, memory_type)
        if records is not None:
            return [record for record in records if what.fits(record)][: what.limit]
        return await self.truth.find(
            user_id,
            memory_type=memory_type,
            entity_ids=what.entity_ids,
            since=what.since,
            contains=what.contains,
            limit=limit,
        )

    async def version(self, user_id: str) -> int:
        """What the truth says."""
        return await self.truth.version(user_id)

    async def deactivate(self, user_id: str) -> int:
        """Never find what there is of this user again; how many records that were."""
        return await self._write(user_id, lambda: self.truth.deactivate(user_id))

    async def purge(self, before: datetime) -> int:
        """As the truth does it; what is inactive stands in no entry."""
        return await self.truth.purge(before)

    async def forget(self, user_id: str) -> int:
        """`deactivate`, and nothing that was said before can be written any more; how many records were active."""
        return await self._write(user_id, lambda: self.truth.forget(user_id))

    def owes(self, user_id: str) -> bool:
        """Whether Redis could not be told of this user's last write: copies may be there, which nobody is served."""
        return user_id in self._owed

    async def close(self) -> None:
        """Close what `from_url` opened on this loop; a client that was passed in stays open, and so does the truth."""
        await self._calls.close()

    def __repr__(self) -> str:
        return f"CachedUserMemoryStore({self.truth!r}, {self._calls.where})"

    async def _write(self, user_id: str, work: Callable[[], Awaitable[T]]) -> T:
        mark = await self._calls.begin(self._calls.keys(require_user(user_id)))
        try:
            result = await work()
        except (ValueError, Forgotten):
            await self._end(user_id, mark)
            raise
        except BaseException:  # it may have been written, or still be: the mark stands until it is believed no more
            self._owed[user_id] = object()
            raise
        await self._end(user_id, mark)
        return result

    async def _end(self, user_id: str, mark: Mark | None = None) -> None:
        """Tell Redis that the user's records changed. Until it knows, this process does not ask it about the user."""
        self._owed[user_id] = owed = object()
        self._seen.pop(user_id, None)
        keys = self._calls.keys(user_id)
        mark = mark or await self._calls.begin(keys)
        if mark and await self._calls.end(keys, mark) and self._owed.get(user_id) is owed:
            del self._owed[user_id]

    async def _records(self, user_id: str, memory_type: MemoryType | None) -> list[UserMemory] | None:
        """All active records of that type; None where the truth is to be searched."""
        if self._owed:
            for other in {user_id, next(iter(self._owed), user_id)} & self._owed.keys():
                await self._end(other)
        keys, kind = self._calls.keys(user_id), memory_type or "any"
        version, entry = (None, None) if user_id in self._owed else await self._entry(user_id, keys, kind)
        if entry:
            try:
                records = decoded(user_id, kind, entry)
                self.stats.hits += 1
                return records
            except TooLarge:
                version = None
            except ValueError:
                self.stats.failures += 1
                log.warning("an entry of the cache could not be read; it is made anew")
        self.stats.misses += 1
        return None if version is None else await self._fill(user_id, memory_type, keys, version)

    async def _entry(self, user_id: str, keys: Keys, kind: str) -> tuple[str | None, Any]:
        """The user's version and its entry, if there is one; no version where no entry may be made."""
        guess = self._seen.get(user_id, "0")
        found = await self._calls.get(keys.pointer, keys.entry(kind, guess))
        if found is None:
            return None, None
        version, entry = _version(found[0]), found[1]
        if version == guess:
            return version, entry
        if version is None:
            ticket = await self._calls.ticket(keys)
            if not ticket:
                return None, None
            version = _version(ticket)
            if version is None:
                version = str(await self.truth.version(user_id))
                entry = await self._calls.settle(keys, keys.entry(kind, version), ticket, version)
                if entry is None or entry == 0:
                    return None, None
                return self._remember(user_id, version), entry
        found = await self._calls.get(keys.entry(kind, version))
        return (None, None) if found is None else (self._remember(user_id, version), found[0])

    def _remember(self, user_id: str, version: str) -> str:
        if len(self._seen) >= MOST_VERSIONS:
            self._seen.clear()
        self._seen[user_id] = version
        return version

    async def _fill(
        self, user_id: str, memory_type: MemoryType | None, keys: Keys, version: str
    ) -> list[UserMemory] | None:
        """What the truth has, which also becomes the entry, unless a write came in between; None if that is too much.

        The version was read before, so that these records are at least as new as it says. For 0, which comes back when
        a user was purged, that would not do: then only nothing is kept.
        """
        records = await self.truth.find(user_id, memory_type=memory_type, limit=MOST_RECORDS + 1)
        if version != "0" or not records:
            await self._calls.fill(keys, keys.entry(memory_type or "any", version), version, encoded(records))
        return records if len(records) <= MOST_RECORDS else None


def _version(pointer: bytes | str | None) -> str | None:
    known = text(pointer) if pointer else ""
    return known if known.isascii() and known.isdigit() else None
