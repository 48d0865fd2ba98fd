"""The tables of a user's records in Postgres: created, each part where it is missing, before a store's first call."""

from __future__ import annotations

from tri_memory.engines.postgres_connection import Connection
from tri_memory.engines.postgres_pool import columns_of
from tri_memory.entity.records import MEMORY_TYPES

COLUMNS = {
    "id",
    "user_id",
    "memory_type",
    "entity_id",
    "content",
    "created_at",
    "updated_at",
    "relevance_score",
    "is_active",
}


class UserMemorySchema:
    """`table` with the records, and `{table}_users` with what is known of each user as a whole.

    The second one's row is also the user's lock: whoever writes or forgets changes it first, and holds it to the end.
    """

    def __init__(self, table: str) -> None:
        self._table, self._users = table, users_of(table)
        self._indexes = [f"{table}_{what}" for what in ("entity", "recent", "content")]

    async def is_there(self, connection: Connection) -> bool:
        columns = await columns_of(connection, self._table)
        if columns and not columns.keys() >= COLUMNS:
            raise ValueError(
                f"the table {self._table} exists and is not one of users' records; give another name, table=…"
            )
        if not columns or not await columns_of(connection, self._users):
            return False
        found = await connection.execute(
            "SELECT count(*) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
            "WHERE indrelid = to_regclass(%s) AND relname = ANY(%s)",
            [self._table, self._indexes],
        )
        row = await found.fetchone()
        return row is not None and row[0] == len(self._indexes)

    async def create(self, connection: Connection) -> None:
        types = ", ".join(f"'{each}'" for each in MEMORY_TYPES)
        entity, recent, content = self._indexes
        # Bytes are compared, as Python does it, and an update of the system's sorting rules breaks no index.
        await connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._table} ("
            "id bigserial PRIMARY KEY, "
            'user_id text COLLATE "C" NOT NULL, '
            f"memory_type text NOT NULL CHECK (memory_type IN ({types})), "
            'entity_id text COLLATE "C" NOT NULL, '
            "content jsonb NOT NULL CHECK (jsonb_typeof(content) = 'object'), "
            "created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), "
            "relevance_score double precision NOT NULL DEFAULT 1.0, is_active boolean NOT NULL DEFAULT true)"
        )
        await connection.execute(
            f"CREATE UNIQUE INDEX IF NOT EXISTS {entity} ON {self._table} (user_id, memory_type, entity_id)"
        )
        await connection.execute(
            f"CREATE INDEX IF NOT EXISTS {recent} ON {self._table} (user_id, memory_type, updated_at DESC) "
            "WHERE is_active"
        )
        await connection.execute(
            f"CREATE INDEX IF NOT EXISTS {content} ON {self._table} USING gin (content jsonb_path_ops)"
        )
        # One sequence for all users: a user who comes back after a purge gets no version twice.
        await connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._users} ("
            'user_id text COLLATE "C" PRIMARY KEY, version bigserial NOT NULL, forgotten_at timestamptz)'
        )

    async def configure(self, connection: Connection) -> None:
        # A time near year 1 or 9999 would overflow on its way into another zone; a plan made for any user and any
        # content would miss the index that is right for these.
        await connection.execute(
            "SELECT set_config('timezone', 'UTC', false), set_config('plan_cache_mode', 'force_custom_plan', false)"
        )


def users_of(table: str) -> str:
    """The name of the table that says of each user which version there is, and when they were forgotten."""
    return f"{table}_users"
