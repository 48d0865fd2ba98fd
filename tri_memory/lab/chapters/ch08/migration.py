"""A table of episodes in its old form, `vector` and no sequence, as it was before half precision."""

from __future__ import annotations

from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from pgvector import Vector

from tri_memory.lab.chapters.ch08.people import People
from tri_memory.lab.chapters.ch08.plain import connect
from tri_memory.lab.datasets import FIRST_DAY


def old_table(url: str, people: People, user: str) -> str:
    """Its name. It holds one person's rows, row i as session `str(i)`, and an HNSW index over single precision."""
    name = f"lesson_{uuid4().hex}"
    with connect(url) as connection:
        connection.execute(
            f"CREATE TABLE {name} (user_id text, session_id text, summary text, "
            f"embedding vector({people.vectors.shape[1]}), created_at timestamptz, PRIMARY KEY (user_id, session_id))"
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {name} VALUES (%s, %s, %s, %s, %s)",
                [(user, str(i), people.texts[i], Vector(people.vectors[i]), FIRST_DAY) for i in people.rows_of[user]],
            )
        connection.execute(f"CREATE INDEX ON {name} USING hnsw (embedding vector_cosine_ops)")
    return name


def kind_and_count(url: str, name: str) -> str:
    """`"360 rows of vector(512)"`, read from the server."""
    with connect(url) as connection:
        kind = connection.execute(
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attname = 'embedding'",
            [name],
        ).fetchone()
        count = connection.execute(f"SELECT count(*) FROM {name}").fetchone()
    assert kind is not None
    assert count is not None
    return f"{count[0]} rows of {kind[0]}"


def scores(url: str, name: str, query: NDArray[np.float32]) -> dict[str, float]:
    """{session: score} of the five nearest rows of the old table, by plain SQL, nearest first."""
    with connect(url) as connection:
        connection.execute("SET enable_indexscan = off")  # compare every row
        return dict(
            connection.execute(
                f"SELECT session_id, 1 - (embedding <=> %s) FROM {name} ORDER BY embedding <=> %s LIMIT 5",
                [Vector(query), Vector(query)],
            ).fetchall()
        )


def drop(url: str, name: str) -> None:
    with connect(url) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {name}, {name}_archive")
