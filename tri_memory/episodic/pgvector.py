"""Layer 3 in Postgres with pgvector: half-precision vectors, compared exactly or through an HNSW index.

An HNSW index is one graph over all users. Asked for the nearest rows of one user it walks through everybody's, so for a
user with a small share of the rows it is slower than comparing all of theirs, and finds less. A recall counts the
user's rows first, in the same statement, and takes the way that is right for that number. Where they are few, the next
hundred recalls of that user compare all of them without counting again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tri_memory.clock import Clock, system_clock, utc_now
from tri_memory.contracts import EpisodicRecord, Recollection, as_utc, require_count, require_text, shown
from tri_memory.engines.closing import Closing
from tri_memory.engines.postgres_connection import Connection
from tri_memory.engines.postgres_pool import PostgresPool
from tri_memory.episodic.fading import Archived, Faded, MemoryId
from tri_memory.episodic.pgvector_archive import Archive, Page, checked_table, dimensions_of
from tri_memory.episodic.pgvector_schema import EpisodeSchema, HalfVector
from tri_memory.recall.cosine import as_unit

MOST_EXACT = 20_000  # rows of one user that are compared one by one in a table of any size
EXACT_SHARE = 0.15  # of the table: a user with less is compared one by one, too
MOST_ROWS = 2**40  # no table has more
UNCOUNTED = 100  # recalls of a user with few rows before they are counted again
USERS_KNOWN = 10_000  # whose last count is kept
MARGIN = 100  # what the index gives beyond k: it finds the nearest in nearly the right order, and ties in any

T = TypeVar("T")

# Millionths of cosine distance, so that equal means equal to 6 digits. No index is sorted by this.
_MILLIONTHS = "round(1e6 * (embedding <=> %(query)s))"
_EXACT = f"""
SELECT session_id, summary, {_MILLIONTHS} AS distance, created_at, false
FROM {{table}}
WHERE user_id = %(user)s AND embedding IS NOT NULL
ORDER BY distance, seq
LIMIT %(k)s
"""
_RECALL = f"""
WITH most AS MATERIALIZED (
    SELECT greatest(%(most)s, {EXACT_SHARE} * reltuples)::bigint AS most
    FROM pg_class WHERE oid = '{{table}}'::regclass
), many AS MATERIALIZED (
    SELECT count(*) > (SELECT most FROM most) AS many
    FROM (SELECT FROM {{table}} WHERE user_id = %(user)s LIMIT (SELECT most + 1 FROM most)) AS counted
), near AS MATERIALIZED (
    SELECT seq, session_id, summary, created_at, {_MILLIONTHS} AS distance
    FROM {{table}}
    WHERE user_id = %(user)s AND embedding IS NOT NULL AND (SELECT many FROM many)
    ORDER BY embedding <=> %(query)s
    LIMIT %(k)s + {MARGIN}
), sure AS MATERIALIZED (  -- of the k first and their order: not where there are too few, or the tie goes on and on
    SELECT coalesce((SELECT distance FROM near ORDER BY distance LIMIT 1 OFFSET %(k)s - 1) < max(distance), false)
        AS sure FROM near
)
SELECT session_id, summary, distance, created_at, (SELECT many FROM many) FROM (
    SELECT * FROM near WHERE (SELECT sure FROM sure)
    UNION ALL (
        SELECT seq, session_id, summary, created_at, {_MILLIONTHS} AS distance
        FROM {{table}}
        WHERE user_id = %(user)s AND embedding IS NOT NULL AND NOT (SELECT sure FROM sure)
        ORDER BY distance, seq
        LIMIT %(k)s
    )
) AS found ORDER BY distance, seq LIMIT %(k)s
"""


class PgVectorEpisodicStore(Closing):
    """Past sessions that outlive the process; a `FadingStore`, whose archive is a second table, `{table}_archive`.

    Nothing is connected before the first call. Vectors have `dimensions` numbers, at most 4,000, and are kept at length
    1 as halfvec, 2 bytes a number: a score is within 0.001 of the exact cosine, rounded to 6 digits, and equal means
    equal there. At most `pool_size` connections for each event loop. Safe for several coroutines, threads and
    processes. Every call raises ConnectionError, naming the server without its password, where that can't be reached.
    """

    def __init__(
        self,
        url: str,
        dimensions: int = 512,
        *,
        table: str = "episodes",
        pool_size: int = 5,
        clock: Clock = system_clock,
    ) -> None:
        self._table, self._dimensions = checked_table(table), dimensions
        self._pool = PostgresPool(url, EpisodeSchema(self._table, dimensions), size=pool_size)
        self._archive, self._clock = Archive(self._table), clock
        self._recall, self._exact = _RECALL.format(table=self._table), _EXACT.format(table=self._table)
        self._uncounted: dict[str, int] = {}  # of a user with few rows, how many more recalls need no count

    @classmethod
    async def connect(
        cls,
        url: str,
        dimensions: int = 512,
        *,
        table: str = "episodes",
        pool_size: int = 5,
        clock: Clock = system_clock,
    ) -> Self:
        """A store that is connected, its tables created where they were missing, old ones migrated.

        Raises ValueError for a table made for other dimensions, naming both.
        """
        store = cls(url, dimensions, table=table, pool_size=pool_size, clock=clock)
        await store._pool.open()
        return store

    @classmethod
    async def existing(cls, url: str, *, table: str = "episodes") -> Self | None:
        """The store of a table that is there already, whatever the size of its vectors; None where there is none."""
        dimensions = await dimensions_of(url, checked_table(table))
        return None if dimensions is None else await cls.connect(url, dimensions, table=table)

    async def remember(self, record: EpisodicRecord) -> None:
        """Store, or replace what this user's session had: then place and `created_at` stay, and it is active and fresh.

        Raises ValueError, and stores nothing, for a vector that is zero, not finite, or of another size.
        """
        if not isinstance(record, EpisodicRecord):
            raise ValueError(f"record must be an EpisodicRecord; got {shown(record)}")
        vector = HalfVector(as_unit(record.embedding, self._dimensions))
        today = utc_now(self._clock).date()

        async def write(connection: Connection) -> None:
            await self._archive.bring_back(connection, record.user_id, record.session_id, today)
            await connection.execute(
                f"INSERT INTO {self._table} (user_id, session_id, summary, embedding, created_at) "
                "VALUES (%s, %s, %s, %s, %s) ON CONFLICT (user_id, session_id) DO UPDATE SET "
                "summary = excluded.summary, embedding = excluded.embedding, tenths = 10, months = 0, fades_from = %s",
                [record.user_id, record.session_id, record.summary, vector, record.created_at, today],
            )

        await self._alone(record.user_id, write)

    async def recall(self, embedding: ArrayLike, k: int = 3, *, user_id: str) -> list[Recollection]:
        """The `k` nearest of this user's records by cosine, best first, equal scores in order of arrival.

        [] for a zero embedding, as a blank query gives, and for an unknown user. Raises ValueError for a blank user,
        k < 1, and an embedding of another size (naming both).
        """
        require_text("user_id", user_id)
        require_count("k", k, least=1)
        query = as_unit(embedding, self._dimensions, zero_ok=True)
        if not query.any():
            return []
        values = self._values(query, k, user_id)
        statement = self._exact if self._needs_no_count(user_id) else self._recall

        async def read(connection: Connection) -> list[Any]:
            return await (await connection.execute(statement, values)).fetchall()

        rows = await self._pool.run(read)
        if statement is self._recall and rows and not rows[0][4]:
            self._uncounted[user_id] = UNCOUNTED
        return [
            Recollection(session_id, summary, round(1 - distance / 1e6, 6), as_utc("created_at", created_at))
            for session_id, summary, distance, created_at, _ in rows
        ]

    def _needs_no_count(self, user_id: str) -> bool:
        left = self._uncounted.get(user_id, 0)
        if left:
            self._uncounted[user_id] = left - 1
        elif len(self._uncounted) > USERS_KNOWN:
            self._uncounted.clear()
        return left > 0

    def _values(self, query: NDArray[np.float32], k: int, user_id: str) -> dict[str, Any]:
        return {"query": HalfVector(query), "user": user_id, "k": min(k, MOST_ROWS), "most": MOST_EXACT}

    async def forget(self, user_id: str) -> int:
        """Delete all of one user's records, the vectors and the archived ones too; how many there were."""
        require_text("user_id", user_id)
        return await self._alone(user_id, lambda connection: self._archive.forget(connection, user_id))

    async def use(self, user_id: str, session_id: str, *, injected: bool = False) -> bool:
        """A recalled memory helped: 0.1 more. False where that is no use: `injected`, or no such memory is active."""
        require_text("user_id", user_id)
        require_text("session_id", session_id)
        if injected:
            return False
        today = utc_now(self._clock).date()
        return await self._alone(user_id, lambda connection: self._archive.use(connection, user_id, session_id, today))

    async def fade(self, *, dry_run: bool = False) -> Faded:
        """Archive every memory, of all users, that weighs less than 0.5 today; with `dry_run`, only say which.

        A thousand memories at a time, each time in one transaction. Where a call fails half-way, run it again.
        """
        now = utc_now(self._clock)
        looked_at, archived, skipped, after = 0, list[MemoryId](), list[MemoryId](), None

        async def turn(connection: Connection) -> Page:
            page = await self._archive.page(connection, after, now.date())
            if dry_run or not page.over:
                return page
            async with connection.transaction():
                await self._archive.lock(connection, [one.user_id for one in page.over])
                return page._replace(over=await self._archive.put_away(connection, page.over, now))

        while True:
            page = await self._pool.run(turn, repeatable=False)
            if page.last is None:
                return Faded(looked_at, tuple(sorted(archived)), tuple(sorted(skipped)))
            looked_at, after = looked_at + page.rows, page.last
            archived, skipped = archived + page.over, skipped + page.ageless

    async def archived(self, user_id: str) -> list[Archived]:
        """What is kept of this user for audit, in order of arrival."""
        require_text("user_id", user_id)
        return await self._pool.run(lambda connection: self._archive.of(connection, user_id))

    async def restore(self, user_id: str, session_id: str) -> bool:
        """Recall it again: 1.0 from today, `created_at` and place as they were. False where the archive has it not."""
        require_text("user_id", user_id)
        require_text("session_id", session_id)
        today = utc_now(self._clock).date()
        return await self._alone(
            user_id, lambda connection: self._archive.bring_back(connection, user_id, session_id, today)
        )

    async def _alone(self, user_id: str, work: Callable[[Connection], Awaitable[T]]) -> T:
        """`work` in one transaction, while nobody else moves, writes or deletes what this user has."""

        async def locked(connection: Connection) -> T:
            async with connection.transaction():
                await self._archive.lock(connection, [user_id])
                return await work(connection)

        return await self._pool.run(locked, repeatable=False)

    async def close(self) -> None:
        """Free the connections, also those of other loops."""
        await self._pool.close()

    def __repr__(self) -> str:
        return f"PgVectorEpisodicStore({self._pool!r}, {self._dimensions}, table={self._table!r})"
