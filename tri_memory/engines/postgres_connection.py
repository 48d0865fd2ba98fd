"""One connection to a Postgres: how it is made, and how it ends where the server says nothing."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from tri_memory.contracts import shown
from tri_memory.engines.address import without_password
from tri_memory.engines.ready import STOPS

try:
    import psycopg
    from psycopg import AsyncConnection
    from psycopg.conninfo import conninfo_to_dict
except ImportError as error:
    raise ImportError(f"Postgres needs psycopg: pip install 'psycopg[binary]' pgvector ({error})") from error


CONNECT_S = 10

Connection = AsyncConnection[Any]


class Deadline:
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


async def connect(url: str) -> Connection:
    checked_url(url)
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
    """What a server's error says, without its details and without the stop at its end."""
    return next(iter(str(error).strip().splitlines()), "").rstrip(STOPS) or type(error).__name__
