"""An upsert that renews everything, the first day too."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from tri_memory import EpisodicRecord, PgVectorEpisodicStore
from tri_memory.engines.postgres_connection import connect
from tri_memory.lab import servers
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, kit, person, table

AGAIN = 0.05  # the share of visits whose summary is written once more
VISITS = 5  # of each of the kit's people


async def remember(connection: Any, table: str, session: str, summary: str, at: Any) -> None:
    await connection.execute(
        f"INSERT INTO {table} (session_id, summary, created_at) VALUES (%s, %s, %s) "
        "ON CONFLICT (session_id) DO UPDATE "
        "SET summary = excluded.summary, created_at = excluded.created_at",
        [session, summary, at],
    )


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    url, name, user = servers.postgres().url, table(f"born_{how}"), person(language, rng)
    visits = kit(language).of(user)
    again = [visit for visit in visits if rng.random() < AGAIN]
    late = visits[-1].started_at + timedelta(days=1)
    writes = [(one, one.started_at) for one in visits] + [(one, late) for one in again]
    store = PgVectorEpisodicStore(url, 3, table=name)
    async with await connect(url) as connection:
        if how == "broken":
            await connection.execute(
                f"CREATE TABLE IF NOT EXISTS {name} (session_id text PRIMARY KEY, summary text, created_at timestamptz)"
            )
        for visit, at in writes:
            if how == "broken":
                await remember(connection, name, visit.session_id, visit.summary, at)
            else:
                await store.remember(EpisodicRecord(user, visit.session_id, visit.summary, [1, 0, 0], at))
        found = await connection.execute(f"SELECT session_id, created_at FROM {name}")
        days = dict(await found.fetchall())
        if how == "broken":
            await connection.execute(f"DELETE FROM {name}")
        else:
            await store.forget(user)
    await store.close()
    moved = [visit for visit in visits if days[visit.session_id] != visit.started_at]
    if moved:
        first = moved[0]
        came = f"{first.session_id} was on {first.started_at:%d %b}, and now on {days[first.session_id]:%d %b}"
    else:
        came = f"{len(visits)} visits, {len(again)} written again, all on their own day"
    return Outcome(came, len(moved), len(visits))


EXHIBIT = Exhibit(
    name="born again",
    reference="langgraph#8340",
    kind="Postgres",
    title="An upsert that forgets the first day",
    unit="days moved",
    notebook="08_recall_in_postgres",
    broken=(remember,),
    show=show,
    set_by_hand=1 - (1 - AGAIN) ** VISITS,
    fault="`created_at = excluded.created_at`: whatever is written again is new. A visit of January becomes the"
    " latest one, never fades, and “what did we say last time?” gets the wrong answer.",
    ours="The conflict updates summary and vector, and leaves `created_at` alone. Every engine is tested for it.",
)
