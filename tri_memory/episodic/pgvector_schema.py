"""The table of episodes in Postgres: created, or brought up from its old form, before a store's first call."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

from pgvector import HalfVector
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg import errors
from psycopg.types import TypeInfo

from tri_memory.contracts import require_count
from tri_memory.engines.postgres_connection import Connection, first_line
from tri_memory.engines.postgres_pool import columns_of
from tri_memory.episodic.pgvector_archive import archive_of

MOST_DIMENSIONS = 4_000  # of a halfvec that HNSW can index
OLDEST = (0, 8)  # the first pgvector whose HNSW goes on searching where a filter drops what it found
NEEDED = {"user_id", "session_id", "summary", "created_at"}
FADING = {"tenths", "months", "fades_from"}
SETTINGS = {
    "hnsw.iterative_scan": "relaxed_order",  # recall sorts what it gets
    "hnsw.ef_search": "100",
    "hnsw.max_scan_tuples": "100000",
    "hnsw.scan_mem_multiplier": "8",
    "max_parallel_workers_per_gather": "0",  # starting one takes longer than most recalls
    "timezone": "UTC",  # or a time near year 1 or 9999 would overflow on its way into another zone
    "plan_cache_mode": "force_custom_plan",  # a plan made for any user would miss what is right for this one
}


class EpisodeSchema:
    """The table `table` with vectors of `dimensions` numbers; ValueError where HNSW can't index so many."""

    def __init__(self, table: str, dimensions: int) -> None:
        require_count("dimensions", dimensions, least=1)
        if dimensions > MOST_DIMENSIONS:
            raise ValueError(
                f"pgvector indexes at most {MOST_DIMENSIONS:,} dimensions; got {dimensions:,}: "
                "use an embedder with fewer"
            )
        self.table, self.dimensions = table, dimensions

    async def is_there(self, connection: Connection) -> bool:
        """Whether table and index are as this version makes them; ValueError where vectors have another size."""
        columns = await columns_of(connection, self.table)
        if not columns:
            return False
        kind, dimensions = columns.get("embedding", ("", 0))
        if kind not in ("vector", "halfvec") or not columns.keys() >= NEEDED:
            raise ValueError(f"the table {self.table} exists and is not one of episodes; give another name, table=…")
        if dimensions not in (-1, self.dimensions):
            self._refuse(dimensions)
        whole = (kind, dimensions) == ("halfvec", self.dimensions) and "seq" in columns
        whole = whole and columns["created_at"][0] == "timestamptz" and columns.keys() >= FADING
        return whole and await self._is_indexed(connection) and await self._has_archive(connection)

    async def create(self, connection: Connection) -> None:
        """What is missing. An old table keeps its rows; see `_to_halfvec`. RuntimeError: the user may not."""
        await _create_extension(connection)
        try:
            await self._make(connection)
        except errors.InsufficientPrivilege as error:
            raise RuntimeError(
                f"this user may not make or alter the table {self.table} ({first_line(error)}): "
                "have its owner connect once with this version of tri_memory"
            ) from error

    async def _make(self, connection: Connection) -> None:
        columns = await columns_of(connection, self.table)
        if not columns:
            await connection.execute(
                f"CREATE TABLE {self.table} ("
                "seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY, "
                'user_id text COLLATE "C" NOT NULL, session_id text COLLATE "C" NOT NULL, summary text NOT NULL, '
                f"embedding halfvec({self.dimensions}), created_at timestamptz NOT NULL)"
            )
        elif columns["embedding"] != ("halfvec", self.dimensions):
            await self._to_halfvec(connection)
        if columns and columns["created_at"][0] != "timestamptz":
            await connection.execute(
                f"ALTER TABLE {self.table} ALTER COLUMN created_at TYPE timestamptz USING created_at AT TIME ZONE 'UTC'"
            )
        if columns and "seq" not in columns:
            await self._number(connection)
        # Beside the other columns and not in a table of its own, so that comparing a row is one read.
        await connection.execute(f"ALTER TABLE {self.table} ALTER COLUMN embedding SET STORAGE MAIN")
        await self._index(connection)
        await self._fade(connection)

    async def configure(self, connection: Connection) -> None:
        info = await TypeInfo.fetch(connection, "halfvec")
        if info is None:
            raise RuntimeError("the type halfvec is not on this user's search_path")
        register_halfvec_info(connection, info)
        await connection.execute(
            "SELECT " + ", ".join(["set_config(%s, %s, false)"] * len(SETTINGS)),
            [word for setting in SETTINGS.items() for word in setting],
        )

    async def _is_indexed(self, connection: Connection) -> bool:
        indexed: bool = await _one(
            connection,
            "SELECT EXISTS (SELECT FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
            "JOIN pg_am ON pg_am.oid = relam JOIN pg_opclass ON pg_opclass.oid = indclass[0] "
            "WHERE indrelid = to_regclass(%s) AND indisvalid AND amname = 'hnsw' AND opcname = 'halfvec_cosine_ops')",
            [self.table],
        )
        return indexed

    async def _index(self, connection: Connection) -> None:
        try:
            await connection.execute(
                f"CREATE UNIQUE INDEX IF NOT EXISTS {self.table}_of_user ON {self.table} (user_id, session_id)"
            )
        except errors.UniqueViolation as error:
            raise ValueError(
                f"the old table {self.table} has a session twice, and was left as it was: {error.diag.message_detail}"
            ) from error
        if not await self._is_indexed(connection):
            await connection.execute(
                f"CREATE INDEX {self.table}_nearest ON {self.table} USING hnsw (embedding halfvec_cosine_ops)"
            )

    async def _has_archive(self, connection: Connection) -> bool:
        archive = archive_of(self.table)
        columns = await columns_of(connection, archive)
        if columns and ("archived_at" not in columns or columns.get("embedding") != ("halfvec", self.dimensions)):
            raise ValueError(
                f"the table {archive} exists and is no archive of {self.table}: rename one, or give table=…"
            )
        return bool(columns)

    async def _fade(self, connection: Connection) -> None:
        """What the step rule needs to know; at once for any number of rows, whose values are the defaults at first.

        `fades_from` is the UTC day from which the age counts; NULL, as at first, says that of `created_at`.
        """
        await connection.execute(
            f"ALTER TABLE {self.table} ADD COLUMN IF NOT EXISTS tenths smallint NOT NULL DEFAULT 10, "
            "ADD COLUMN IF NOT EXISTS months integer NOT NULL DEFAULT 0, ADD COLUMN IF NOT EXISTS fades_from date"
        )
        if not await self._has_archive(connection):
            await connection.execute(
                f"CREATE TABLE {archive_of(self.table)} (seq bigint NOT NULL, "
                'user_id text COLLATE "C" NOT NULL, session_id text COLLATE "C" NOT NULL, summary text NOT NULL, '
                f"embedding halfvec({self.dimensions}), created_at timestamptz NOT NULL, "
                "archived_at timestamptz NOT NULL, PRIMARY KEY (user_id, session_id))"
            )
            await self._grant_the_same(connection)

    async def _grant_the_same(self, connection: Connection) -> None:
        """Who may read and write the table may do so with its archive."""
        granted = await connection.execute(
            "SELECT privilege_type, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END "
            "FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = to_regclass(%s) AND grantee <> relowner "
            "AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')",
            [self.table],
        )
        for privilege, role in await granted.fetchall():
            await connection.execute(f"GRANT {privilege} ON {archive_of(self.table)} TO {role}")

    async def _to_halfvec(self, connection: Connection) -> None:
        """The old form had `vector`, twice as large. A row whose vector has no direction (NULL, or all zeros) stays,
        with NULL: `recall` can't find it, `forget` counts it, and `remember` for its session mends it."""
        other = await _one(
            connection,
            f"SELECT size FROM (SELECT vector_dims(embedding::vector) AS size FROM {self.table}) AS sizes "
            "WHERE size <> %s LIMIT 1",
            [self.dimensions],
        )
        if other is not None:
            self._refuse(other)
        for name in await self._indexes_of_vectors(connection):
            await connection.execute(f"DROP INDEX {name}")
        await connection.execute(f"ALTER TABLE {self.table} ALTER COLUMN embedding DROP NOT NULL")
        await connection.execute(
            f"ALTER TABLE {self.table} ALTER COLUMN embedding TYPE halfvec({self.dimensions}) USING "
            "CASE WHEN vector_norm(embedding::vector) > 0 "
            f"THEN l2_normalize(embedding::vector)::halfvec({self.dimensions}) END"
        )
        blank = await _one(connection, f"SELECT count(*) FROM {self.table} WHERE embedding IS NULL")
        if blank:
            warnings.warn(
                f"{blank} rows of the old table {self.table} have a vector of zeros or none: they are kept, and can't "
                "be recalled until their sessions are archived again",
                stacklevel=2,
            )

    async def _indexes_of_vectors(self, connection: Connection) -> list[str]:
        found = await connection.execute(
            "SELECT DISTINCT pg_depend.objid::regclass::text FROM pg_depend "
            "JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid "
            "JOIN pg_class ON pg_class.oid = pg_depend.objid AND relkind = 'i' "
            "WHERE refobjid = to_regclass(%s) AND attname = 'embedding'",
            [self.table],
        )
        return [name for (name,) in await found.fetchall()]

    async def _number(self, connection: Connection) -> None:
        """Order of arrival for rows that have none: by time, which is as near as it can be known."""
        await connection.execute(f"ALTER TABLE {self.table} ADD COLUMN seq bigint")
        await connection.execute(
            f"UPDATE {self.table} SET seq = numbered.n FROM (SELECT ctid AS place, "
            f"row_number() OVER (ORDER BY created_at, ctid) AS n FROM {self.table}) AS numbered WHERE ctid = place"
        )
        await connection.execute(f"ALTER TABLE {self.table} ALTER COLUMN seq SET NOT NULL")
        await connection.execute(f"ALTER TABLE {self.table} ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY")
        await connection.execute(
            f"SELECT setval(pg_get_serial_sequence('{self.table}', 'seq'), "
            f"(SELECT coalesce(max(seq), 0) + 1 FROM {self.table}), false)"
        )

    def _refuse(self, dimensions: int) -> NoReturn:
        raise ValueError(
            f"the table {self.table} holds embeddings of {dimensions} dimensions, and this store is for "
            f"{self.dimensions}: use the embedder that the stored ones came from, or another table=…"
        )


async def _create_extension(connection: Connection) -> None:
    """pgvector, where it isn't there already; RuntimeError says what an administrator has to do."""
    version = await _one(connection, "SELECT max(extversion) FROM pg_extension WHERE extname = 'vector'")
    if version is None:
        try:
            await connection.execute("CREATE EXTENSION vector")
        except (errors.UndefinedFile, errors.FeatureNotSupported) as error:
            raise RuntimeError(
                f"this Postgres has no pgvector ({first_line(error)}): install the server package "
                "(postgresql-17-pgvector on Debian), or use the image pgvector/pgvector:pg17"
            ) from error
        except errors.InsufficientPrivilege as error:
            raise RuntimeError(
                "this user may not create the extension pgvector: have a superuser run CREATE EXTENSION vector "
                "in this database, once"
            ) from error
        version = await _one(connection, "SELECT max(extversion) FROM pg_extension WHERE extname = 'vector'")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise RuntimeError(f"pgvector {version} is too old, 0.8 is needed: ALTER EXTENSION vector UPDATE")


async def _one(connection: Connection, query: str, values: list[Any] | None = None) -> Any:
    row = await (await connection.execute(query, values)).fetchone()
    return row[0] if row else None


__all__ = ["EpisodeSchema", "HalfVector"]
