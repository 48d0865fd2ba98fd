"""The record of each user in Postgres: one row for each user, type and entity."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Self, TypeVar

from tri_memory.clock import Clock, system_clock, utc_now
from tri_memory.contracts import as_utc
from tri_memory.engines.closing import Closing
from tri_memory.engines.postgres_connection import Connection
from tri_memory.engines.postgres_pool import PostgresPool, identifier
from tri_memory.entity.content import from_text, to_text
from tri_memory.entity.postgres_schema import UserMemorySchema, users_of
from tri_memory.entity.records import (
    MemoryType,
    UserMemory,
    Wanted,
    refuse_forgotten,
    require_user,
    standing,
    statement,
    wanted,
)

MOST_ROWS = 2**40  # no table has more

T = TypeVar("T")

_RECORD = "user_id, memory_type, entity_id, content::text, created_at, updated_at, relevance_score, is_active"
_FILTERS = {
    "memory_type": "memory_type = %(memory_type)s",
    "entity_ids": "entity_id = ANY(%(entity_ids)s)",
    "since": "updated_at >= %(since)s",
    "contains": "content @> %(contains)s::jsonb",
}


class PostgresUserMemoryStore(Closing):
    """A `UserMemoryStore` that outlives the process. Nothing is connected before the first call.

    At most `pool_size` connections for each event loop. Safe for several coroutines, threads and processes. Every call
    raises ConnectionError, naming the server without its password, where that can't be reached.
    """

    def __init__(
        self, url: str, *, table: str = "user_memory", pool_size: int = 5, clock: Clock = system_clock
    ) -> None:
        self._table, self._users = identifier(table), users_of(table)
        self._pool = PostgresPool(url, UserMemorySchema(self._table), size=pool_size)
        self._clock = clock

    @classmethod
    async def connect(
        cls, url: str, *, table: str = "user_memory", pool_size: int = 5, clock: Clock = system_clock
    ) -> Self:
        """A store that is connected, its tables created where they were missing."""
        store = cls(url, table=table, pool_size=pool_size, clock=clock)
        await store._pool.open()
        return store

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

        async def write(connection: Connection, forgotten_at: datetime | None) -> UserMemory:
            refuse_forgotten(new, forgotten_at, queued=began_at is not None)
            kept = await self._kept(connection, new)
            record = standing(new, kept, utc_now(self._clock))
            if record is not kept:
                await self._write(connection, record)
            return record

        return await self._alone(new.user_id, write)

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
        query, values = self._query(wanted(user_id, memory_type, entity_ids, since, contains, limit))

        async def read(connection: Connection) -> list[UserMemory]:
            return [_record(row) for row in await (await connection.execute(query, values)).fetchall()]

        return await self._pool.run(read)

    def _query(self, what: Wanted) -> tuple[str, dict[str, Any]]:
        values = {
            "user_id": what.user_id,
            "memory_type": what.memory_type,
            "entity_ids": None if what.entity_ids is None else sorted(what.entity_ids),
            "since": what.since,
            "contains": None if what.contains is None else to_text("contains", what.contains),
            "limit": min(what.limit, MOST_ROWS),
        }
        given = [condition for name, condition in _FILTERS.items() if values[name] is not None]
        where = " AND ".join(["user_id = %(user_id)s", "is_active", *given])
        query = f"SELECT {_RECORD} FROM {self._table} WHERE {where} ORDER BY updated_at DESC, id DESC LIMIT %(limit)s"
        return query, values

    async def version(self, user_id: str) -> int:
        """A number that this user never had before the last write, `deactivate` or `forget`; 0 for an unknown user."""
        user_id = require_user(user_id)

        async def read(connection: Connection) -> int:
            found = await connection.execute(f"SELECT version FROM {self._users} WHERE user_id = %s", [user_id])
            row = await found.fetchone()
            return row[0] if row else 0

        return await self._pool.run(read)

    async def deactivate(self, user_id: str) -> int:
        """Never find what there is of this user again; how many records that were."""
        user_id = require_user(user_id)

        async def hide(connection: Connection, forgotten_at: datetime | None) -> int:
            return await self._deactivate(connection, user_id, utc_now(self._clock))

        return await self._alone(user_id, hide)

    async def purge(self, before: datetime) -> int:
        """Delete for good what has been inactive since before that time, of all users; how many records that were."""
        values = {"before": as_utc("before", before)}
        is_over = "NOT is_active AND updated_at < %(before)s"

        async def delete(connection: Connection) -> int:
            async with connection.transaction():
                # Locked before anything is deleted, so that none of these users writes while the last statement looks.
                locked = await connection.execute(
                    f"SELECT user_id FROM {self._users} AS known WHERE coalesce(forgotten_at < %(before)s, true) "
                    f"AND NOT EXISTS (SELECT FROM {self._table} WHERE user_id = known.user_id AND NOT ({is_over})) "
                    "ORDER BY user_id FOR UPDATE",
                    values,
                )
                users = [user_id for (user_id,) in await locked.fetchall()]
                gone = await connection.execute(f"DELETE FROM {self._table} WHERE {is_over}", values)
                await connection.execute(
                    f"DELETE FROM {self._users} AS known WHERE user_id = ANY(%s) "
                    f"AND NOT EXISTS (SELECT FROM {self._table} WHERE user_id = known.user_id)",
                    [users],
                )
                return gone.rowcount

        return await self._pool.run(delete, repeatable=False)

    async def forget(self, user_id: str) -> int:
        """`deactivate`, and nothing that was said before can be written any more; how many records were active."""
        user_id = require_user(user_id)

        async def hide(connection: Connection, forgotten_at: datetime | None) -> int:
            now = utc_now(self._clock)
            await connection.execute(
                f"UPDATE {self._users} SET forgotten_at = %s WHERE user_id = %s",
                [max(now, forgotten_at or now), user_id],
            )
            return await self._deactivate(connection, user_id, now)

        return await self._alone(user_id, hide)

    async def close(self) -> None:
        """Free the connections, also those of other loops."""
        await self._pool.close()

    def __repr__(self) -> str:
        return f"PostgresUserMemoryStore({self._pool!r}, table={self._table!r})"

    async def _alone(self, user_id: str, work: Callable[[Connection, datetime | None], Awaitable[T]]) -> T:
        """`work` with the time at which the user was last forgotten: in one transaction, under a new version of the
        user, whose row nobody else can change until it ends."""

        async def locked(connection: Connection) -> T:
            async with connection.transaction():
                found = await connection.execute(
                    f"INSERT INTO {self._users} (user_id) VALUES (%s) "
                    "ON CONFLICT (user_id) DO UPDATE SET version = DEFAULT RETURNING forgotten_at",
                    [user_id],
                )
                row = await found.fetchone()
                assert row is not None
                return await work(connection, None if row[0] is None else as_utc("forgotten_at", row[0]))

        return await self._pool.run(locked, repeatable=False)

    async def _kept(self, connection: Connection, like: UserMemory) -> UserMemory | None:
        found = await connection.execute(
            f"SELECT {_RECORD} FROM {self._table} WHERE (user_id, memory_type, entity_id) = (%s, %s, %s)",
            [like.user_id, like.memory_type, like.entity_id],
        )
        row = await found.fetchone()
        return _record(row) if row else None

    async def _write(self, connection: Connection, record: UserMemory) -> None:
        await connection.execute(
            f"INSERT INTO {self._table} (user_id, memory_type, entity_id, content, created_at, updated_at) "
            "VALUES (%s, %s, %s, %s::jsonb, %s, %s) ON CONFLICT (user_id, memory_type, entity_id) DO UPDATE SET "
            "content = excluded.content, created_at = excluded.created_at, updated_at = excluded.updated_at, "
            "relevance_score = 1.0, is_active = true",
            [
                record.user_id,
                record.memory_type,
                record.entity_id,
                to_text("content", record.content),
                record.created_at,
                record.updated_at,
            ],
        )

    async def _deactivate(self, connection: Connection, user_id: str, now: datetime) -> int:
        hidden = await connection.execute(
            f"UPDATE {self._table} SET is_active = false, updated_at = %s WHERE user_id = %s AND is_active",
            [now, user_id],
        )
        return hidden.rowcount


def _record(row: tuple[Any, ...]) -> UserMemory:
    user_id, memory_type, entity_id, content, *rest = row
    return UserMemory(user_id, memory_type, entity_id, from_text(content), *rest)
