"""What a dry run may do to a table of episodes: look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tri_memory.engines.postgres_connection import connect
from tri_memory.engines.postgres_rights import naming_the_grant
from tri_memory.episodic.fading import MemoryId
from tri_memory.episodic.pgvector_archive import dimensions_of
from tri_memory.episodic.pgvector_schema import EpisodeSchema

FIRST = 200  # characters


class Seen(NamedTuple):
    """A memory as a list shows it: whose, the UTC day it was made, and its first 200 characters."""

    id: MemoryId
    day: str
    text: str


async def refuse_old(url: str, table: str) -> None:
    """RuntimeError where a store would first have to bring the table up to date."""
    dimensions = await dimensions_of(url, table)
    if dimensions is None:
        return
    async with await connect(url) as connection:
        if not await EpisodeSchema(table, dimensions).is_there(connection):
            raise RuntimeError(
                f"the table {table} is from an older version, and a dry run changes nothing: `tri-memory decay` brings "
                "it up to date and archives; PgVectorEpisodicStore.existing(url) brings it up to date and no more"
            )


async def look(url: str, table: str, memories: Sequence[MemoryId]) -> list[Seen]:
    """Those of `memories` that `table` has, in their order."""
    async with await connect(url) as connection:
        with naming_the_grant(connection):
            found = await connection.execute(
                "SELECT user_id, session_id, to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), "
                f"left(summary, {FIRST}) FROM {table} JOIN unnest(%s::text[], %s::text[]) WITH ORDINALITY "
                "AS wanted (of_user, of_session, place) ON (user_id, session_id) = (of_user, of_session) "
                "ORDER BY place",
                [[one.user_id for one in memories], [one.session_id for one in memories]],
            )
            return [Seen(MemoryId(user, session), day, text) for user, session, day, text in await found.fetchall()]
