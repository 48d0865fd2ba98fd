"""A table of the lesson's own: its name, and its end."""

from __future__ import annotations

import psycopg
from psycopg import sql


def drop(url: str, table: str) -> None:
    """The table and those that its store keeps beside it, whose names begin with its own."""
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        found = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND starts_with(tablename, %s)",
            [table],
        ).fetchall()
        for (name,) in found:
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name)))
