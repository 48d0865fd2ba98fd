"""Layer 2 in Postgres: one row for each user and key."""

from __future__ import annotations

from typing import Self

from tri_memory.contracts import require_text
from tri_memory.engines.closing import Closing
from tri_memory.engines.postgres_connection import Connection
from tri_memory.engines.postgres_pool import PostgresPool, columns_of, identifier
from tri_memory.preference.rules import clean, clean_key

COLUMNS = {"user_id", "key", "value", "seq", "created_at", "updated_at"}


class PostgresPreferenceStore(Closing):
    """Preferences that outlive the process. Nothing is connected before the first call.

    At most `pool_size` connections for each event loop. Safe for several coroutines, threads and processes. Every call
    raises ConnectionError, naming the server without its password, where that can't be reached.
    """

    def __init__(self, url: str, *, table: str = "preferences", pool_size: int = 5) -> None:
        self._table = identifier(table)
        self._pool = PostgresPool(url, _PreferenceSchema(self._table), size=pool_size)

    @classmethod
    async def connect(cls, url: str, *, table: str = "preferences", pool_size: int = 5) -> Self:
        """A store that is connected, its table created where it was missing."""
        store = cls(url, table=table, pool_size=pool_size)
        await store._pool.open()
        return store

    async def get(self, user_id: str, key: str) -> str | None:
        require_text("user_id", user_id)
        tidy = clean_key(key)

        async def read(connection: Connection) -> str | None:
            found = await connection.execute(
                f"SELECT value FROM {self._table} WHERE user_id = %s AND key = %s", [user_id, tidy]
            )
            row = await found.fetchone()
            return row[0] if row else None

        return await self._pool.run(read)

    async def set(self, user_id: str, key: str, value: str) -> bool:
        """Write or replace; False where the guard rails dropped it. Again: place and `created_at` stay."""
        require_text("user_id", user_id)
        pair = clean(key, value)
        if pair is None:
            return False

        async def write(connection: Connection) -> None:
            await connection.execute(
                f"INSERT INTO {self._table} (user_id, key, value) VALUES (%s, %s, %s) "
                "ON CONFLICT (user_id, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
                [user_id, *pair],
            )

        await self._pool.run(write, repeatable=False)
        return True

    async def all(self, user_id: str) -> dict[str, str]:
        require_text("user_id", user_id)

        async def read(connection: Connection) -> dict[str, str]:
            found = await connection.execute(
                f"SELECT key, value FROM {self._table} WHERE user_id = %s ORDER BY seq", [user_id]
            )
            return dict(await found.fetchall())

        return await self._pool.run(read)

    async def forget(self, user_id: str) -> int:
        require_text("user_id", user_id)

        async def delete(connection: Connection) -> int:
            return (await connection.execute(f"DELETE FROM {self._table} WHERE user_id = %s", [user_id])).rowcount

        return await self._pool.run(delete, repeatable=False)

    async def close(self) -> None:
        """Free the connections, also those of other loops."""
        await self._pool.close()

    def __repr__(self) -> str:
        return f"PostgresPreferenceStore({self._pool!r}, table={self._table!r})"


class _PreferenceSchema:
    def __init__(self, table: str) -> None:
        self._table = table

    async def is_there(self, connection: Connection) -> bool:
        columns = await columns_of(connection, self._table)
        if columns and not columns.keys() >= COLUMNS:
            raise ValueError(
                f"the table {self._table} exists and is not one of preferences; give another name, table=…"
            )
        return bool(columns)

    async def create(self, connection: Connection) -> None:
        # Bytes are compared, as Python does it, and an update of the system's sorting rules breaks no index.
        await connection.execute(
            f"CREATE TABLE {self._table} ("
            'user_id text COLLATE "C", key text COLLATE "C", value text NOT NULL, '
            "seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY, "
            "created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), "
            "PRIMARY KEY (user_id, key))"
        )

    async def configure(self, connection: Connection) -> None:
        pass
