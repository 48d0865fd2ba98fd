"""What a Postgres pool holds for one event loop: the connections, and a limit on every wait."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from tri_memory.contracts import shown
from tri_memory.engines.address import without_password

try:
    import psycopg
    from psycopg import AsyncConnection, errors
    from psycopg.conninfo import conninfo_to_dict
    from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout
except ImportError as error:
    raise ImportError(f"Postgres needs psycopg: pip install 'psycopg[binary,pool]' pgvector ({error})") from error

CONNECT_S = 10
STATEMENT_S = 30
SILENCE_S = 35  # longer than the server's own limit, whose error says more
WAIT_S = 30  # for a free connection
SCHEMA_S = 1_800  # an index over many rows takes its time
SCHEMA_LOCK = 0x7472_695F_6D65_6D6F  # "tri_memo", one for all tables: creating the extension is shared

Connection = AsyncConnection[Any]
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
    """The pool of one loop."""

    def __init__(self, url: str, schema: Schema, size: int) -> None:
        self._url, self._schema, self._size = url, schema, size
        self._at = f"Postgres at {without_password(url)}"
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._opening = asyncio.Lock()
        self._connections: WeakSet[Connection] = WeakSet()
        self._generation = 0

    async def ready(self) -> AsyncConnectionPool[Connection]:
        async with self._opening:
            if self._pool is None:
                await self._create()
                pool = AsyncConnectionPool(
                    self._url,
                    kwargs={"autocommit": True, "connect_timeout": CONNECT_S},
                    min_size=1,
                    max_size=self._size,
                    configure=self._greet,
                    timeout=WAIT_S,
                    open=False,
                )
                await pool.open()
                self._pool = pool
                self._keeper = self._until_the_loop_ends()
                await anext(self._keeper)
        return self._pool

    async def once(self, work: Callable[[Connection], Awaitable[T]], repeatable: bool) -> T:
        pool, generation = await self.ready(), self._generation
        try:
            async with pool.connection() as connection:
                return await self._under_watch(connection, work, repeatable, generation)
        except PoolTimeout:
            raise await self._why_none_is_free() from None
        except PoolClosed:
            raise RuntimeError(f"the store on {self._at} was closed during a call") from None

    async def _under_watch(
        self, connection: Connection, work: Callable[[Connection], Awaitable[T]], repeatable: bool, generation: int
    ) -> T:
        begun = False
        deadline = _Deadline(connection, SILENCE_S)
        try:
            with deadline:
                if not repeatable:
                    await connection.execute("SELECT 1")
                begun = True
                return await work(connection)
        except errors.QueryCanceled as error:
            raise TimeoutError(f"{self._at} gave up: {first_line(error)}") from error
        except psycopg.OperationalError as error:
            if deadline.passed:
                raise ConnectionError(f"{self._at} gave no answer for {SILENCE_S} s") from error
            if not (connection.closed or isinstance(error, _DIED)):
                raise
            raise Dead(error, generation, repeatable or not begun) from error

    async def renew(self, generation: int) -> None:
        """Replace the connections of that generation: where one is dead, the server may have restarted."""
        if self._pool is not None and self._generation == generation:
            self._generation += 1
            await self._pool.drain()

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
            await self._keeper.aclose()

    def abandon(self) -> None:
        """Close the sockets of a loop that has ended, in which nothing can be awaited any more."""
        for connection in list(self._connections):
            connection.pgconn.finish()

    async def _create(self) -> None:
        connection = await _connect(self._url)
        try:
            with _Deadline(connection, SILENCE_S):
                if await self._schema.is_there(connection):
                    return
            with _Deadline(connection, SCHEMA_S):
                async with connection.transaction():
                    await connection.execute("SET LOCAL statement_timeout = 0")
                    await connection.execute("SELECT pg_advisory_xact_lock(%s)", [SCHEMA_LOCK])
                    if not await self._schema.is_there(connection):
                        await self._schema.create(connection)
        except psycopg.OperationalError as error:
            raise ConnectionError(f"{self._at} failed at the first call: {first_line(error)}") from error
        finally:
            await connection.close()

    async def _greet(self, connection: Connection) -> None:
        self._connections.add(connection)
        with _Deadline(connection, CONNECT_S):
            await connection.execute("SELECT set_config('statement_timeout', %s, false)", [str(1_000 * STATEMENT_S)])
            await self._schema.configure(connection)

    async def _why_none_is_free(self) -> ConnectionError:
        try:
            await (await _connect(self._url)).close()
        except ConnectionError as error:
            return error
        return ConnectionError(
            f"all {self._size} connections to {self._at} were busy for {WAIT_S} s; give the store a larger pool_size"
        )

    async def _until_the_loop_ends(self) -> AsyncGenerator[None]:
        """`asyncio.run` closes the generators that are still open, and so our connections, before the loop."""
        try:
            yield
        finally:
            self.abandon()


class _Deadline:
    """Hang up on a server that says nothing: its own time limits are of no use then."""

    def __init__(self, connection: Connection, seconds: float) -> None:
        self._connection, self._seconds = connection, seconds
        self.passed = False

    def __enter__(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._hang_up)

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _hang_up(self) -> None:
        self.passed = True
        if self._connection.closed:
            return
        ours = socket.socket(fileno=self._connection.fileno())
        try:
            ours.shutdown(socket.SHUT_RDWR)
        finally:
            ours.detach()  # libpq closes it


async def _connect(url: str) -> Connection:
    try:
        return await AsyncConnection.connect(url, autocommit=True, connect_timeout=CONNECT_S)
    except psycopg.OperationalError as error:
        raise ConnectionError(
            f"Postgres at {without_password(url)} can't be reached: {first_line(error)}; "
            "start the server or correct the URL"
        ) from error


def checked_url(url: str) -> str:
    """`url`; ValueError where libpq can't read it, which never quotes the password."""
    if not (isinstance(url, str) and url.startswith(("postgresql://", "postgres://"))):
        raise ValueError("a Postgres URL is postgresql://user:password@host:5432/database; got something else")
    try:
        conninfo_to_dict(url)
    except psycopg.Error:
        raise ValueError(f"{shown(without_password(url))} is no Postgres URL that libpq can read") from None
    return url


def first_line(error: BaseException) -> str:
    """What a server's error says, without its details."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
