"""The Postgres connections of one event loop, with a limit on every wait.

No task runs in the background. psycopg_pool has some: where `asyncio.run` ends while one of them is connecting, it
takes being cancelled for a failed attempt and goes on, and `asyncio.run` waits for it for ever.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol, TypeVar
from weakref import WeakSet

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from tri_memory.engines.address import without_password
from tri_memory.engines.postgres_connection import CONNECT_S, Connection, Deadline, connect, first_line
from tri_memory.engines.postgres_rights import naming_the_grant

STATEMENT_S = 30
SILENCE_S = 35  # longer than the server's own limit, whose error says more
WAIT_S = 30  # for a free connection, or for a server that restarts
SCHEMA_S = 1_800  # an index over many rows takes its time
SCHEMA_LOCK = 0x7472_695F_6D65_6D6F  # "tri_memo", one for all tables: creating the extension is shared

T = TypeVar("T")
_DIED = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleSessionTimeout)


class Schema(Protocol):
    """What a store keeps in Postgres, as its pool asks for it."""

    async def is_there(self, connection: Connection) -> bool:
        """Whether all of it exists; ValueError where what exists is of another kind."""

    async def create(self, connection: Connection) -> None:
        """Create or migrate; runs in a transaction in which no other process of ours does the same."""

    async def configure(self, connection: Connection) -> None:
        """Settings and types of a new connection."""


class Dead(Exception):
    """The connection ended under a call. `repeatable`: the call had no effect, or may have it twice."""

    def __init__(self, cause: psycopg.Error, generation: int, repeatable: bool) -> None:
        super().__init__(str(cause))
        self.cause, self.generation, self.repeatable = cause, generation, repeatable


class LoopConnections:
    """At most `size` of them, each made when it is needed and kept."""

    def __init__(self, url: str, schema: Schema, size: int) -> None:
        self._url, self._schema, self._size = url, schema, size
        self._at = f"Postgres at {without_password(url)}"
        self._opening = asyncio.Lock()
        self._keeper: AsyncGenerator[None] | None = None
        self._turns = asyncio.Semaphore(size)
        self._free: list[Connection] = []
        self._made: WeakSet[Connection] = WeakSet()
        self._generation = 0
        self._unreachable: ConnectionError | None = None
        self._closed = False

    async def ready(self) -> None:
        """Create what is missing, once; ConnectionError where the server can't be reached now."""
        if self._keeper is not None:
            return
        async with self._opening:
            if self._keeper is None:
                await self._create()
                self._keeper = self._until_the_loop_ends()
                await anext(self._keeper)

    async def once(self, work: Callable[[Connection], Awaitable[T]], repeatable: bool) -> T:
        """What `work` returns; Dead where the connection was."""
        await self._turn()
        try:
            generation = self._generation
            connection = self._alive() or await self._connect_patiently()
            try:
                return await self._under_watch(connection, work, repeatable, generation)
            finally:
                fit = connection.info.transaction_status == TransactionStatus.IDLE
                if fit and generation == self._generation and not self._closed:
                    self._free.append(connection)
                else:
                    await connection.close()
        finally:
            self._turns.release()

    def _alive(self) -> Connection | None:
        """A free connection that the server hasn't ended while it was idle, as a restart does."""
        while self._free:
            connection = self._free.pop()
            try:
                for _ in range(2):  # doesn't wait; reads the server's last words, and then that there is no more
                    connection.pgconn.consume_input()
            except psycopg.OperationalError:
                connection.pgconn.finish()
            else:
                return connection
        return None

    async def _turn(self) -> None:
        if not self._turns.locked():
            await self._turns.acquire()  # at once
            return
        try:
            async with asyncio.timeout(WAIT_S):
                await self._turns.acquire()
        except TimeoutError:
            busy = f"all {self._size} connections to {self._at} were busy for {WAIT_S} s"
            raise self._unreachable or ConnectionError(f"{busy}; give the store a larger pool_size") from None

    async def _connect_patiently(self) -> Connection:
        """The server was there once: it may be restarting."""
        loop = asyncio.get_running_loop()
        pause, last = 0.05, loop.time() + WAIT_S
        while True:
            try:
                connection = await self._connect()
            except ConnectionError as error:
                self._unreachable = error
                if loop.time() + pause > last:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, 2.0)
            else:
                self._unreachable = None
                return connection

    async def _connect(self) -> Connection:
        connection = await connect(self._url)
        self._made.add(connection)
        try:
            with Deadline(connection, CONNECT_S):
                await connection.execute(
                    "SELECT set_config('statement_timeout', %s, false)", [str(int(1_000 * STATEMENT_S))]
                )
                await self._schema.configure(connection)
        except BaseException as error:
            await connection.close()
            if isinstance(error, psycopg.OperationalError):
                raise ConnectionError(f"{self._at} went away on connecting: {first_line(error)}") from error
            raise
        return connection

    async def _under_watch(
        self, connection: Connection, work: Callable[[Connection], Awaitable[T]], repeatable: bool, generation: int
    ) -> T:
        deadline = Deadline(connection, SILENCE_S)
        try:
            with deadline, naming_the_grant(connection):
                return await work(connection)
        except errors.ProgramLimitExceeded as error:
            raise ValueError(f"Postgres can't index ids of that length ({first_line(error)})") from error
        except psycopg.DataError as error:
            if not re.match("(timestamp|date) too (large|small)", str(error)):
                raise
            raise ValueError(f"{self._at} holds a time outside the years 1 to 9999: {first_line(error)}") from error
        except errors.QueryCanceled as error:
            raise TimeoutError(f"{self._at} gave up: {first_line(error)}") from error
        except psycopg.OperationalError as error:
            if deadline.passed:
                raise ConnectionError(f"{self._at} gave no answer for {SILENCE_S} s") from error
            if not (connection.closed or isinstance(error, _DIED)):
                raise
            raise Dead(error, generation, repeatable) from error

    async def renew(self, generation: int) -> None:
        """Close the connections of that generation: where one is dead, the server may have restarted."""
        if self._generation == generation:
            self._generation += 1
            await self._close_free()

    async def close(self) -> None:
        """The free ones now, the others when their call ends."""
        self._closed = True
        await self._close_free()

    async def _close_free(self) -> None:
        while self._free:
            await self._free.pop().close()

    def abandon(self) -> None:
        """Close the sockets of a loop that has ended, in which nothing can be awaited any more."""
        for connection in list(self._made):
            connection.pgconn.finish()

    async def _create(self) -> None:
        connection = await connect(self._url)
        try:
            with Deadline(connection, SILENCE_S):
                if await self._schema.is_there(connection):
                    return
            with Deadline(connection, SCHEMA_S), naming_the_grant(connection):
                async with connection.transaction():
                    await connection.execute("SET LOCAL statement_timeout = 0")
                    await connection.execute("SELECT pg_advisory_xact_lock(%s)", [SCHEMA_LOCK])
                    if not await self._schema.is_there(connection):
                        await self._schema.create(connection)
        except psycopg.OperationalError as error:
            raise ConnectionError(f"{self._at} failed at the first call: {first_line(error)}") from error
        finally:
            await connection.close()

    async def _until_the_loop_ends(self) -> AsyncGenerator[None]:
        """`asyncio.run` closes the generators that are still open, and so our connections, before the loop."""
        try:
            yield
        finally:
            self.abandon()
