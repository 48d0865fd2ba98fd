"""Connections to one Postgres for one store: a pool for each event loop, and a limit on every wait.

A connection belongs to the loop it was made in. A store that was made in one notebook cell and is used from a thread
with a loop of its own therefore gets a second pool there, which is freed when that loop ends.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NoReturn, TypeVar

from tri_memory.contracts import require_count, shown
from tri_memory.engines.address import without_password
from tri_memory.engines.postgres_connection import CONNECT_S, Connection, checked_url, first_line
from tri_memory.engines.postgres_loop import Dead, LoopConnections, Schema

T = TypeVar("T")


class PostgresPool:
    """At most `size` connections a loop, opened at the first call, when `schema` is created where it is missing.

    Raises ValueError for what is no Postgres URL.
    """

    def __init__(self, url: str, schema: Schema, *, size: int) -> None:
        self._url = checked_url(url)
        self._size = require_count("pool_size", size, least=1)
        self._schema = schema
        self._opened: dict[asyncio.AbstractEventLoop, LoopConnections] = {}
        self._lock = threading.Lock()
        self._closed = False

    def __repr__(self) -> str:
        return without_password(self._url)

    async def open(self) -> None:
        """Connect this loop, if it isn't yet."""
        await (await self._of_this_loop()).ready()

    async def run(self, work: Callable[[Connection], Awaitable[T]], *, repeatable: bool = True) -> T:
        """What `work` returns; it gets a connection in autocommit.

        A connection that ended while it was idle is replaced before. Where one ends under the call, `work` runs once
        more on a new one; not with `repeatable=False`, which is for writes, whose effect is unknown then: a repeated
        one could bring back what another call has deleted since.
        Raises ConnectionError where the server can't be reached, goes away or falls silent, TimeoutError where a
        statement takes longer than 30 s.
        """
        opened = await self._of_this_loop()
        await opened.ready()
        try:
            return await opened.once(work, repeatable)
        except Dead as dead:
            if not dead.repeatable:
                self._lost(dead)
            await opened.renew(dead.generation)
        try:
            return await opened.once(work, repeatable)
        except Dead as dead:
            self._lost(dead)

    async def close(self) -> None:
        """Close the connections of every loop; a later call is a RuntimeError."""
        self._closed = True
        with self._lock:
            every, self._opened = list(self._opened.items()), {}
        for loop, opened in every:
            if loop is asyncio.get_running_loop():
                await opened.close()
            elif loop.is_running():
                elsewhere = asyncio.run_coroutine_threadsafe(opened.close(), loop)
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.wrap_future(elsewhere), CONNECT_S)
            else:
                opened.abandon()

    def _lost(self, dead: Dead) -> NoReturn:
        hint = "" if dead.repeatable else "; whether the call had its effect is not known, so make it again"
        message = f"Postgres at {self!r} went away during a call ({first_line(dead.cause)}){hint}"
        raise ConnectionError(message) from dead.cause

    async def _of_this_loop(self) -> LoopConnections:
        if self._closed:
            raise RuntimeError(f"this store on {self!r} is closed; make a new one")
        loop = asyncio.get_running_loop()
        if type(loop).__name__ == "ProactorEventLoop":
            raise RuntimeError(
                "psycopg can't use Windows' ProactorEventLoop: before the loop starts, call "
                "asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())"
            )
        with self._lock:
            opened = self._opened.get(loop)
            if opened is None:
                for ended in [one for one in self._opened if one.is_closed()]:
                    self._opened.pop(ended).abandon()
                opened = self._opened[loop] = LoopConnections(self._url, self._schema, self._size)
        return opened


def identifier(name: str) -> str:
    """A table's name that needs no quotes and leaves room for its indexes' names; ValueError otherwise."""
    if not (isinstance(name, str) and re.fullmatch("[a-z_][a-z0-9_]{0,39}", name)):
        raise ValueError(f"table must be at most 40 of a-z, 0-9 and _, and not start with a digit; got {shown(name)}")
    return name


async def columns_of(connection: Connection, table: str) -> dict[str, tuple[str, int]]:
    """{column: (type, its size or -1)}; {} where there is no such table.

    Reading a catalogue table makes the server take note of what others have committed; `SELECT to_regclass(…)` alone
    would answer as at the transaction's start.
    """
    found = await connection.execute(
        "SELECT attname, typname, atttypmod FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid "
        "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
        [table],
    )
    return {name: (kind, size) for name, kind, size in await found.fetchall()}
