"""A plain connection to the lesson's server that knows pgvector's types, with a limit on every wait."""

from __future__ import annotations

import psycopg
from pgvector.psycopg import register_vector


def connect(url: str) -> psycopg.Connection:
    """In autocommit; used as a context manager it closes. A statement may take 60 s, connecting 10 s.

    Statements are planned anew each time: a plan made before a setting was changed would go on without it.
    """
    connection = psycopg.connect(url, autocommit=True, prepare_threshold=None, connect_timeout=10)
    connection.execute("SET statement_timeout = '60s'")
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    register_vector(connection)
    return connection
