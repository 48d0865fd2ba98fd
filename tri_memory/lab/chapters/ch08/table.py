"""The store's own table with ten people's rows in it, asked in plain SQL: what the planner does with which setting."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from tri_memory import PgVectorEpisodicStore, blocking
from tri_memory.episodic.pgvector_schema import SETTINGS
from tri_memory.lab import servers
from tri_memory.lab.chapters.ch08.people import People, ten_people
from tri_memory.lab.chapters.ch08.plain import connect
from tri_memory.lab.datasets import FIRST_DAY

NEAREST = "SELECT session_id FROM {table} WHERE user_id = %s ORDER BY embedding <=> %s LIMIT %s"
WAYS: dict[str, dict[str, str]] = {
    "default": {},
    "index, stops": {"enable_sort": "off"},  # the planner may not sort, so it has to take the order from the graph
    "index, goes on": {"enable_sort": "off", "hnsw.iterative_scan": "relaxed_order"},
    "exact": {"enable_indexscan": "off"},
}


class EpisodeTable:
    """The table of a `PgVectorEpisodicStore`, filled by COPY, with an HNSW index. Row i has the session id `str(i)`.

    `index_s` is how long the index took to build, in seconds. `drop` frees everything and may be called twice.
    """

    def __init__(self, url: str, people: People) -> None:
        self.people, self.name = people, f"lesson_{uuid4().hex}"
        self.store = blocking(PgVectorEpisodicStore.connect(url, people.vectors.shape[1], table=self.name))
        self.connection = connect(url)
        self.index_s = self._fill()

    def _fill(self) -> float:
        """Rows first, then the index: to build it once is faster than to mend it at every row."""
        copy = f"COPY {self.name} (user_id, session_id, summary, embedding, created_at) FROM STDIN (FORMAT BINARY)"
        self.drop_index()
        order = np.random.default_rng(2).permutation(len(self.people.owners))
        with self.connection.cursor() as cursor, cursor.copy(copy) as rows:
            rows.set_types(["text", "text", "text", "halfvec", "timestamptz"])
            for at, i in enumerate(map(int, order)):
                vector = HalfVector(self.people.vectors[i])
                at_time = FIRST_DAY + timedelta(minutes=at)
                rows.write_row((self.people.owners[i], str(i), self.people.texts[i], vector, at_time))
        took = self.build_index()
        self.connection.execute(f"ANALYZE {self.name}")
        return took

    def drop_index(self) -> None:
        self.connection.execute(f"DROP INDEX IF EXISTS {self.name}_nearest")

    def build_index(self) -> float:
        """Seconds that it took; pgvector reads all rows and links each with its near ones."""
        started = time.perf_counter()
        self.connection.execute(
            f"CREATE INDEX {self.name}_nearest ON {self.name} USING hnsw (embedding halfvec_cosine_ops)"
        )
        return time.perf_counter() - started

    @contextmanager
    def under(self, settings: dict[str, str]) -> Iterator[None]:
        """These settings for the statements inside, and the server's own again after them."""
        with self.connection.transaction():
            for name, value in settings.items():
                self.connection.execute("SELECT set_config(%s, %s, true)", [name, value])
            yield

    def nearest(self, query: NDArray[np.float32], user: str, k: int) -> list[int]:
        """What plain SQL finds, as row numbers, nearest first."""
        found = self.connection.execute(NEAREST.format(table=self.name), [user, HalfVector(query), k]).fetchall()
        return [int(row) for (row,) in found]

    def plan(self, query: NDArray[np.float32], user: str, k: int) -> str:
        """How the planner goes about `nearest`: its scans, and how many rows their filter threw away."""
        return extract(self.explained(NEAREST.format(table=self.name), [user, HalfVector(query), k]))

    def explained(self, statement: str, values: Any) -> list[str]:
        """EXPLAIN ANALYZE of a statement, with this table called `episodes`, as the lessons do."""
        explain = f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) {statement}"
        return [line.replace(self.name, "episodes") for (line,) in self.connection.execute(explain, values).fetchall()]

    def store_plan(self, query: NDArray[np.float32], user: str, k: int) -> str:
        """The same of the store's own statement."""
        own = self.store.store
        with self.under(SETTINGS):
            return extract(self.explained(own._recall, own._values(query, k, user)))

    def sizes(self) -> dict[str, int]:
        """Bytes of the rows, of the HNSW index and of the index by user."""
        row = self.connection.execute(
            f"SELECT pg_table_size('{self.name}'), pg_relation_size('{self.name}_nearest'), "
            f"pg_relation_size('{self.name}_of_user')"
        ).fetchone()
        assert row is not None
        return dict(zip(("rows", "HNSW index", "index by user"), row, strict=True))

    def drop(self) -> None:
        if not self.connection.closed:
            self.store.close()
            self.connection.execute(f"DROP TABLE IF EXISTS {self.name}, {self.name}_archive")
            self.connection.close()


def extract(lines: list[str]) -> str:
    """Of an EXPLAIN the scans of the episodes that ran and what their filter removed, without the vector's numbers."""
    wanted, ran = [], False
    for line in lines:
        step = line.strip().removeprefix("->  ")
        if " Scan " in step:
            ran = "episodes" in step and "never executed" not in step
            if ran:
                wanted.append(step)
        elif ran and step.startswith("Rows Removed by Filter"):
            wanted.append(f"    {step}")
    return "\n".join(wanted)


@cache
def lesson_table() -> EpisodeTable:
    """This kernel's table, filled at the first call."""
    return EpisodeTable(servers.postgres().url, ten_people())


def drop_lesson_table() -> None:
    """Leave nothing behind; the next `lesson_table()` would make it anew."""
    if lesson_table.cache_info().currsize:
        lesson_table().drop()
        lesson_table.cache_clear()
