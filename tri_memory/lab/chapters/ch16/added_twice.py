"""Look whether it is there, then insert."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from uuid import uuid4

from tri_memory import PostgresPreferenceStore
from tri_memory.engines.postgres_connection import connect
from tri_memory.lab import servers
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, table

TOLD = {"en": ("allergy", "latex"), "zh": ("过敏", "花生")}


async def add(connection: Any, table: str, user: str, memory: str) -> None:
    """Store what the user said, once."""
    same = f"SELECT 1 FROM {table} WHERE user_id = %s AND memory = %s"
    found = await connection.execute(same, [user, memory])
    if await found.fetchone() is None:
        await connection.execute(f"INSERT INTO {table} VALUES (%s, %s)", [user, memory])


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    url, gap = servers.postgres().url, rng.expovariate(1 / 0.004)
    name, user = table(f"added_{how}"), f"ann-{uuid4().hex}"
    key, value = TOLD[language]
    store = PostgresPreferenceStore(url, table=name)
    async with await connect(url) as one, await connect(url) as other:
        if how == "broken":
            await one.execute(f"CREATE TABLE IF NOT EXISTS {name} (user_id text, memory text)")
        else:
            await store.all(user)  # connects, and makes its table

        async def write(connection: Any, after_s: float) -> None:
            await asyncio.sleep(after_s)
            if how == "broken":
                await add(connection, name, user, f"{key}: {value}")
            else:
                await store.set(user, key, value)

        await asyncio.gather(write(one, 0), write(other, gap))
        found = await one.execute(f"SELECT * FROM {name} WHERE user_id = %s", [user])
        rows = len(await found.fetchall())
    await store.close()
    return Outcome(f"told twice, {gap * 1e3:.1f} ms apart: rows of “{key}: {value}”: {rows}", rows - 1, rows)


EXHIBIT = Exhibit(
    name="added twice",
    reference="mem0#6515",
    kind="Postgres",
    title="Looked first, and then inserted",
    unit="rows too many",
    notebook="06_remember_preferences",
    broken=(add,),
    show=show,
    fault="Between SELECT and INSERT there is a moment. Two requests that both look in it both find nothing, "
    "and both insert. Tests make one call after the other, so they never meet it.",
    ours="A primary key, and one statement: INSERT … ON CONFLICT DO UPDATE. The server decides.",
)
