"""What a Postgres user may not do, and the statement that would let them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import errors, sql

from tri_memory.engines.postgres_connection import Connection, first_line

NEEDED = {
    "table": "SELECT, INSERT, UPDATE, DELETE ON",
    "view": "SELECT, INSERT, UPDATE, DELETE ON",
    "sequence": "USAGE, SELECT ON SEQUENCE",
    "schema": "USAGE, CREATE ON SCHEMA",
}


@contextmanager
def naming_the_grant(connection: Connection) -> Iterator[None]:
    """A right that the connection's user lacks becomes a RuntimeError with the statement that gives it."""
    try:
        yield
    except errors.InsufficientPrivilege as error:
        raise RuntimeError(f"{first_line(error)}: {_way_out(str(error), connection.info.user)}") from error


def _way_out(message: str, user: str) -> str:
    denied = re.match(rf"permission denied for ({'|'.join(NEEDED)}) (\S+)", message)
    if denied is None:  # another kind of right, or a server that speaks another language
        return "connect as the owner of the tables, who makes them and grants the rights to others"
    kind, name = denied.groups()
    return f"its owner lets this user in with GRANT {NEEDED[kind]} {name} TO {sql.Identifier(user).as_string()}"
