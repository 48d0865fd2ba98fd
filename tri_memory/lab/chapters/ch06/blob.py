"""Two writers and one user: all preferences in one JSON text, or one row a key."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from uuid import uuid4

import pandas as pd
import psycopg
from psycopg import sql

from tri_memory.blocking_calls import blocking
from tri_memory.lab.chapters.ch06.rows import drop
from tri_memory.preference.postgres import PostgresPreferenceStore

USER = "maeve"
WRITERS = 2
LIMIT_S = 60  # for the two writers of one run

Write = Callable[[str, str, Sequence[str], Callable[[], None]], None]  # url, table, keys, what happens meanwhile


def rewrite(url: str, table: str, keys: Sequence[str], meanwhile: Callable[[], None]) -> None:
    """For each key: read the JSON text, put the key in, write the whole text back."""
    read = sql.SQL("SELECT preferences FROM {} WHERE user_id = %s").format(sql.Identifier(table))
    write = sql.SQL("UPDATE {} SET preferences = %s WHERE user_id = %s").format(sql.Identifier(table))
    with psycopg.connect(url, connect_timeout=10, autocommit=True) as connection:
        for key in keys:
            row = connection.execute(read, [USER]).fetchone()
            preferences = dict(row[0]) if row else {}
            meanwhile()
            connection.execute(write, [json.dumps(preferences | {key: "yes"}), USER])


def merge(url: str, table: str, keys: Sequence[str], meanwhile: Callable[[], None]) -> None:
    """For each key: one statement that reads, merges and writes inside the server."""
    write = sql.SQL("UPDATE {} SET preferences = preferences || %s WHERE user_id = %s").format(sql.Identifier(table))
    with psycopg.connect(url, connect_timeout=10, autocommit=True) as connection:
        for key in keys:
            meanwhile()
            connection.execute(write, [json.dumps({key: "yes"}), USER])


def upsert(url: str, table: str, keys: Sequence[str], meanwhile: Callable[[], None]) -> None:
    """For each key: `set` of the store, one row each."""
    store = blocking(PostgresPreferenceStore(url, table=f"{table}_rows"))
    try:
        for key in keys:
            meanwhile()
            store.set(USER, key, "yes")
    finally:
        store.close()


DESIGNS: dict[str, Write] = {
    "JSON, read and write back": rewrite,
    "JSON, merged in one UPDATE": merge,
    "a row a key": upsert,
}


def lost(url: str, write: Write, keys: int, pauses: Sequence[Callable[[], None]]) -> int:
    """How many of the preferences that two writers set are gone: each sets `keys` of its own, and calls its pause
    between reading and writing. TimeoutError after 60 s."""
    table = f"lesson_06_{uuid4().hex[:12]}"
    mine = [[f"writer {n} key {i}" for i in range(keys)] for n in range(WRITERS)]
    try:
        _create(url, table)
        with ThreadPoolExecutor(WRITERS) as pool:
            running = [pool.submit(write, url, table, its, pause) for its, pause in zip(mine, pauses, strict=True)]
            for writer in running:
                writer.result(timeout=LIMIT_S)
        return len({key for its in mine for key in its} - _stored(url, table))
    finally:
        drop(url, table)
        drop(url, f"{table}_rows")


def counted(url: str, seeds: Sequence[int], keys: int = 20) -> pd.DataFrame:
    """A row a design and seed: design, seed, lost (of 2 × `keys` preferences). Between reading and writing 1 to 3 ms
    pass, as they do in an application that thinks about what it read."""
    found = []
    for design, write in DESIGNS.items():
        for seed in seeds:
            pauses = [partial(_think, random.Random(100 * seed + n)) for n in range(WRITERS)]
            found.append((design, seed, lost(url, write, keys, pauses)))
    return pd.DataFrame(found, columns=["design", "seed", "lost"])


def _think(rng: random.Random) -> None:
    time.sleep(rng.uniform(0.001, 0.003))


def _create(url: str, table: str) -> None:
    create = sql.SQL("CREATE TABLE {} (user_id text PRIMARY KEY, preferences jsonb NOT NULL)")
    insert = sql.SQL("INSERT INTO {} VALUES (%s, '{{}}')")
    with psycopg.connect(url, connect_timeout=10, autocommit=True) as connection:
        connection.execute(create.format(sql.Identifier(table)))
        connection.execute(insert.format(sql.Identifier(table)), [USER])


def _stored(url: str, table: str) -> set[str]:
    keys = sql.SQL("SELECT jsonb_object_keys(preferences) FROM {}").format(sql.Identifier(table))
    rows = sql.SQL("SELECT key FROM {}").format(sql.Identifier(f"{table}_rows"))
    found: set[str] = set()
    with psycopg.connect(url, connect_timeout=10, autocommit=True) as connection:
        for query in (keys, rows):
            with suppress(psycopg.errors.UndefinedTable):  # only one of the designs has rows
                found |= {row[0] for row in connection.execute(query).fetchall()}
    return found
