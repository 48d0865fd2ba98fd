"""How memories fade in Postgres: what moves between the hot table and the archive, and what keeps two moves apart.

Archived rows lie in a table of their own, so that the hot one, its statements and its HNSW index stay as they are and
get smaller. Whatever moves, writes or deletes a user's rows first takes that user's lock: without it, a `forget` that
has emptied one table while a row was on its way there from the other would leave it. `recall` takes no lock.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, NamedTuple

from tri_memory.contracts import as_utc, shown
from tri_memory.engines.postgres_connection import Connection, connect
from tri_memory.engines.postgres_pool import columns_of, identifier
from tri_memory.engines.postgres_rights import naming_the_grant
from tri_memory.episodic.fading import Archived, Fading, MemoryId
from tri_memory.recall.decay import LEAST_TENTHS, MONTH, MOST_TENTHS, StepState

PAGE = 1_000  # rows looked at in one transaction: no more users' locks than a server has room for

# For each number of tenths, the days that it lasts: the step rule, as it is in recall/decay.py and nowhere else.
LASTS = [StepState(tenths).lasts() for tenths in range(LEAST_TENTHS, MOST_TENTHS + 1)]
_SINCE = "coalesce(fades_from, (created_at AT TIME ZONE 'UTC')::date)"
_OVER = (  # NULL where there is no age, as for infinity
    "CASE WHEN created_at BETWEEN '0001-01-01 00:00+00' AND '9999-12-31 23:59:59.999999+00' THEN "
    f"greatest(%(today)s::date - {_SINCE} - {MONTH:.0f} * months, 0) >= (%(lasts)s::int[])[tenths - {LEAST_TENTHS - 1}]"
    " END"
)
_KEPT = "seq, user_id, session_id, summary, embedding, created_at"


class Page(NamedTuple):
    """What was looked at: how many rows, those that are over, those without an age, and the last of all, after which
    the next page begins."""

    rows: int
    over: list[MemoryId]
    ageless: list[MemoryId]
    last: MemoryId | None


class Archive:
    """The statements on `table` and its archive. Each method belongs into a transaction, under the locks it names."""

    def __init__(self, table: str) -> None:
        self._table, self._archive = table, archive_of(table)

    async def lock(self, connection: Connection, user_ids: list[str]) -> None:
        """Until the transaction ends nobody else moves, writes or deletes what these users have.

        A statement of its own: what comes after it sees all that others have committed while it waited. In the order
        of the keys, so that two who want the same users don't wait for each other.
        """
        await connection.execute(
            "SELECT pg_advisory_xact_lock(key) FROM (SELECT hashtextextended(user_id, hashtext(%s)) AS key "
            "FROM unnest(%s::text[]) AS users (user_id) ORDER BY key) AS keys",
            [self._table, user_ids],
        )

    async def page(self, connection: Connection, after: MemoryId | None, today: date) -> Page:
        """The next rows in the order of users and sessions; needs no lock."""
        beyond = "WHERE (user_id, session_id) > (%(user)s, %(session)s)" if after else ""
        found = await connection.execute(
            f"SELECT user_id, session_id, {_OVER} FROM {self._table} {beyond} "
            "ORDER BY user_id, session_id LIMIT %(page)s",
            _rule(today) | {"page": PAGE} | ({"user": after.user_id, "session": after.session_id} if after else {}),
        )
        rows = await found.fetchall()
        over = [MemoryId(user, session) for user, session, is_over in rows if is_over]
        ageless = [MemoryId(user, session) for user, session, is_over in rows if is_over is None]
        return Page(len(rows), over, ageless, MemoryId(*rows[-1][:2]) if rows else None)

    async def put_away(self, connection: Connection, memories: list[MemoryId], now: datetime) -> list[MemoryId]:
        """Those of `memories` that are still there and still over, now archived. Under the locks of their users.

        A row that the archive has already, as a writer that knows no archive can bring about, is replaced: one memory
        is one row.
        """
        moved = await connection.execute(
            f"WITH gone AS (DELETE FROM {self._table} USING unnest(%(users)s::text[], %(sessions)s::text[]) "
            "AS over (of_user, of_session) WHERE (user_id, session_id) = (of_user, of_session) "
            f"AND {_OVER} RETURNING {_KEPT}) "
            f"INSERT INTO {self._archive} AS old ({_KEPT}, archived_at) SELECT {_KEPT}, %(now)s FROM gone "
            "ON CONFLICT (user_id, session_id) DO UPDATE SET summary = excluded.summary, "
            "embedding = excluded.embedding, archived_at = excluded.archived_at RETURNING user_id, session_id",
            _rule(now.date())
            | {
                "users": [one.user_id for one in memories],
                "sessions": [one.session_id for one in memories],
                "now": now,
            },
        )
        return [MemoryId(*row) for row in await moved.fetchall()]

    async def bring_back(self, connection: Connection, user_id: str, session_id: str, today: date) -> bool:
        """Under the user's lock."""
        moved = await connection.execute(
            f"WITH back AS (DELETE FROM {self._archive} WHERE user_id = %s AND session_id = %s RETURNING {_KEPT}) "
            f"INSERT INTO {self._table} ({_KEPT}, fades_from) OVERRIDING SYSTEM VALUE "
            f"SELECT {_KEPT}, %s FROM back ON CONFLICT (user_id, session_id) DO NOTHING",
            [user_id, session_id, today],
        )
        return moved.rowcount == 1

    async def use(self, connection: Connection, user_id: str, session_id: str, today: date) -> bool:
        """Writes only where the use adds something: a new memory weighs 1.0 already. Under the user's lock."""
        row = [user_id, session_id]
        where = "WHERE user_id = %s AND session_id = %s"
        found = await connection.execute(f"SELECT {_SINCE}, tenths, months FROM {self._table} {where}", row)
        kept = await found.fetchone()
        if kept is None:
            return False
        before = Fading(kept[0], StepState(kept[1], kept[2]))
        state = before.used(today).state
        if state != before.state:
            await connection.execute(
                f"UPDATE {self._table} SET tenths = %s, months = %s {where}", [state.tenths, state.months, *row]
            )
        return True

    async def forget(self, connection: Connection, user_id: str) -> int:
        """From both tables. Under the user's lock."""
        gone = 0
        for table in (self._table, self._archive):
            gone += (await connection.execute(f"DELETE FROM {table} WHERE user_id = %s", [user_id])).rowcount
        return gone

    async def of(self, connection: Connection, user_id: str) -> list[Archived]:
        """Needs no lock."""
        found = await connection.execute(
            f"SELECT session_id, summary, created_at, archived_at FROM {self._archive} WHERE user_id = %s ORDER BY seq",
            [user_id],
        )
        return [
            Archived(session_id, summary, as_utc("created_at", created_at), as_utc("archived_at", archived_at))
            for session_id, summary, created_at, archived_at in await found.fetchall()
        ]


async def dimensions_of(url: str, table: str) -> int | None:
    """How many numbers the vectors in `table` have; None where it isn't there, or states no size and has no rows."""
    async with await connect(url) as connection:
        with naming_the_grant(connection):
            return await _dimensions_of(connection, table)


async def _dimensions_of(connection: Connection, table: str) -> int | None:
    kind, size = (await columns_of(connection, table)).get("embedding", ("", 0))
    if kind not in ("vector", "halfvec"):
        return None
    if size != -1:
        return size
    found = await connection.execute(f"SELECT vector_dims(embedding) FROM {table} WHERE embedding IS NOT NULL LIMIT 1")
    row = await found.fetchone()
    return row[0] if row else None


def checked_table(name: str) -> str:
    """`name`; ValueError for what is no identifier, and for the name of an archive."""
    if identifier(name).endswith("_archive"):
        raise ValueError(f"table must not end in _archive, as what a store has archived does; got {shown(name)}")
    return name


def archive_of(table: str) -> str:
    """The name of the table that holds what `table` has archived."""
    return f"{table}_archive"


def _rule(today: date) -> dict[str, Any]:
    return {"today": today, "lasts": LASTS}
