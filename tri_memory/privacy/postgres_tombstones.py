"""The registry of the forgotten in Postgres, for all processes that write to the same stores."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import as_utc
from tri_memory.engines.closing import Closing
from tri_memory.engines.postgres_connection import Connection
from tri_memory.engines.postgres_pool import PostgresPool, columns_of, identifier
from tri_memory.privacy.pseudonyms import Pseudonyms
from tri_memory.privacy.tombstones import Ending, Write, refuse

NOBODY = ""  # the row of the last forgetting whose note was purged
LEASE_S = 600  # a write that takes longer, or whose process died, is not waited for; nor is a forgetting believed in

T = TypeVar("T")


class PostgresTombstones(Closing):
    """A `Tombstones` that several processes share. A write costs two short transactions more.

    The table `table` holds a row for each user who was forgotten, under the pseudonym, until it is purged, and
    `{table}_writes` one for each write under way. All processes need the same key, and clocks that agree. A process
    that dies leaves its write standing for 10 minutes at most: a `forget` in that time waits as long as its patience,
    and says that a write has not ended. Raises ConnectionError where the server can't be reached, and then nothing is
    written by the guarded store.
    """

    def __init__(
        self,
        url: str,
        pseudonyms: Pseudonyms,
        *,
        table: str = "tombstones",
        pool_size: int = 5,
        clock: Clock = system_clock,
    ) -> None:
        self._users, self._writes = identifier(table), f"{table}_writes"
        self._pool = PostgresPool(url, _Schema(self._users, self._writes), size=pool_size)
        self._pseudonyms, self.clock = pseudonyms, clock

    async def open(self) -> None:
        """Connect, and create what is missing; every call does where this was not called."""
        await self._pool.open()

    async def begin(self, user_id: str, began_at: datetime | None = None) -> Write:
        began_at = None if began_at is None else as_utc("began_at", began_at)
        name = self._pseudonyms.of_user(user_id)

        async def announce(connection: Connection) -> Write:
            forgotten_at, closed = await self._state(connection, name)
            dropped, _ = await self._state(connection, NOBODY)
            refuse(began_at, forgotten_at, closed, dropped)
            write = Write(secrets.token_hex(16), name, forgotten_at)
            await connection.execute(
                f"INSERT INTO {self._writes} (number, name, expires_at) "
                f"VALUES (%s, %s, clock_timestamp() + interval '{LEASE_S} seconds')",
                [write.number, name],
            )
            return write

        return await self._alone(name, announce)

    async def end(self, write: Write) -> Ending:
        async def sign_off(connection: Connection) -> Ending:
            gone = await connection.execute(
                f"DELETE FROM {self._writes} WHERE number = %s RETURNING late OR expires_at < clock_timestamp()",
                [write.number],
            )
            row = await gone.fetchone()
            forgotten_at, _ = await self._state(connection, write.user)
            if forgotten_at == write.forgotten_at:
                return "stands"
            return "undo" if row is None or row[0] else "gone"

        return await self._alone(write.user, sign_off)

    async def shut(self, user_id: str) -> datetime:
        name = self._pseudonyms.of_user(user_id)
        now = as_utc("the clock's time", self.clock())

        async def note(connection: Connection) -> datetime:
            done = await connection.execute(
                f"INSERT INTO {self._users} AS known (name, forgotten_at, closings, closed_until) "
                f"VALUES (%(name)s, %(now)s, 1, clock_timestamp() + interval '{LEASE_S} seconds') "
                "ON CONFLICT (name) DO UPDATE SET closings = 1 + CASE WHEN known.closed_until > clock_timestamp() "
                "THEN known.closings ELSE 0 END, closed_until = excluded.closed_until, "
                "forgotten_at = greatest(excluded.forgotten_at, known.forgotten_at) RETURNING forgotten_at",
                {"name": name, "now": now},
            )
            row = await done.fetchone()
            assert row is not None
            return as_utc("forgotten_at", row[0])

        return await self._alone(name, note)

    async def under_way(self, user_id: str) -> int:
        name = self._pseudonyms.of_user(user_id)

        async def count(connection: Connection) -> int:
            found = await connection.execute(
                f"SELECT count(*) FROM {self._writes} WHERE name = %s AND expires_at > clock_timestamp()", [name]
            )
            row = await found.fetchone()
            return row[0] if row else 0

        return await self._pool.run(count)

    async def reopen(self, user_id: str) -> None:
        name = self._pseudonyms.of_user(user_id)

        async def unlock(connection: Connection) -> None:
            done = await connection.execute(
                f"UPDATE {self._users} SET closings = greatest(closings - 1, 0) WHERE name = %s RETURNING closings",
                [name],
            )
            row = await done.fetchone()
            if row is not None and not row[0]:
                await connection.execute(f"UPDATE {self._writes} SET late = true WHERE name = %s", [name])

        await self._alone(name, unlock)

    async def forgotten_at(self, user_id: str) -> datetime | None:
        name = self._pseudonyms.of_user(user_id)

        async def read(connection: Connection) -> datetime | None:
            return (await self._state(connection, name))[0]

        return await self._pool.run(read)

    async def purge(self, before: datetime) -> int:
        before = as_utc("before", before)

        async def delete(connection: Connection) -> int:
            gone = await connection.execute(
                f"DELETE FROM {self._users} AS known WHERE forgotten_at < %s AND name <> %s "
                "AND (closings = 0 OR closed_until < clock_timestamp()) "
                f"AND NOT EXISTS (SELECT FROM {self._writes} WHERE name = known.name "
                "AND expires_at > clock_timestamp()) RETURNING forgotten_at",
                [before, NOBODY],
            )
            if dropped := [row[0] for row in await gone.fetchall()]:
                await connection.execute(
                    f"INSERT INTO {self._users} AS known VALUES (%s, %s, 0, clock_timestamp()) ON CONFLICT (name) "
                    "DO UPDATE SET forgotten_at = greatest(known.forgotten_at, excluded.forgotten_at)",
                    [NOBODY, max(dropped)],
                )
            await connection.execute(
                f"DELETE FROM {self._writes} WHERE expires_at < clock_timestamp() - interval '1 day'"
            )
            return gone.rowcount

        async def at_once(connection: Connection) -> int:
            async with connection.transaction():
                return await delete(connection)

        return await self._pool.run(at_once, repeatable=False)

    async def close(self) -> None:
        """Free the connections, also those of other loops."""
        await self._pool.close()

    async def _state(self, connection: Connection, name: str) -> tuple[datetime | None, bool]:
        found = await connection.execute(
            f"SELECT forgotten_at, closings > 0 AND closed_until > clock_timestamp() FROM {self._users} "
            "WHERE name = %s",
            [name],
        )
        row = await found.fetchone()
        return (as_utc("forgotten_at", row[0]), row[1]) if row else (None, False)

    async def _alone(self, name: str, work: Callable[[Connection], Awaitable[T]]) -> T:
        """`work` in a transaction, while nobody else announces a write of this user or forgets them."""

        async def locked(connection: Connection) -> T:
            async with connection.transaction():
                await connection.execute(
                    "SELECT pg_advisory_xact_lock(hashtextextended(%s, hashtext(%s)))", [name, self._users]
                )
                return await work(connection)

        return await self._pool.run(locked, repeatable=False)


class _Schema:
    def __init__(self, users: str, writes: str) -> None:
        self._users, self._writes = users, writes

    async def is_there(self, connection: Connection) -> bool:
        columns = await columns_of(connection, self._users)
        if columns and not columns.keys() >= {"name", "forgotten_at", "closings", "closed_until"}:
            raise ValueError(f"the table {self._users} exists and is no registry; give another name, table=…")
        return bool(columns and await columns_of(connection, self._writes))

    async def create(self, connection: Connection) -> None:
        await connection.execute(
            f'CREATE TABLE IF NOT EXISTS {self._users} (name text COLLATE "C" PRIMARY KEY, '
            "forgotten_at timestamptz NOT NULL, closings integer NOT NULL, closed_until timestamptz NOT NULL)"
        )
        await connection.execute(
            f'CREATE TABLE IF NOT EXISTS {self._writes} (number text PRIMARY KEY, name text COLLATE "C" NOT NULL, '
            "expires_at timestamptz NOT NULL, late boolean NOT NULL DEFAULT false)"
        )
        await connection.execute(f"CREATE INDEX IF NOT EXISTS {self._writes}_name ON {self._writes} (name, expires_at)")

    async def configure(self, connection: Connection) -> None:
        # A time near year 1 or 9999 would overflow on its way into another zone.
        await connection.execute("SELECT set_config('timezone', 'UTC', false)")
