"""Large values: one field of a JSONB document against one row of a split table, and a large value in Redis."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import pandas as pd
import psycopg
import redis
from psycopg import sql

from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch11.tables import drop
from tri_memory.lab.claims import Outcome

SIZES = (1_000, 10_000, 100_000, 1_000_000, 2_000_000)  # bytes of JSON
REDIS_SIZES = (1_000, 10_000, 100_000, 1_000_000, 8_000_000)
REPEATS, MORE, WARM = 9, 60, 3
SMALL = 100_000  # bytes; up to here a call is over so soon that it is made `MORE` times
WHOLE, SPLIT = "one JSONB document", "a row for each field"


def document(size: int) -> dict[str, str]:
    """Fields of the kit's own sentences, about `size` bytes as JSON; the field `phone` is the one to be changed."""
    said = [turn.content for code in ("en", "zh") for one in datasets.load(code).sessions for turn in one.turns]
    fields, length, i = {"phone": "555-0142"}, 0, 0
    while length < size:
        text = f"{said[i % len(said)]} {i}"
        fields[f"note-{i}"] = text
        length += len(text.encode()) + 20
        i += 1
    return fields


def jsonb(url: str) -> pd.DataFrame:
    """The change of one field: size (bytes), way, ms (the median of 60, of 9 for what is large), least, most, and wal
    (bytes of write-ahead log for it, the median). The ways take turns. Tables of its own, gone at the end."""
    rows = []
    with _tables(url) as (connection, whole, split):
        for size in SIZES:
            fields = document(size)
            connection.execute(_sql("TRUNCATE {}, {}", whole, split))
            connection.execute(_sql("INSERT INTO {} VALUES ('ann', %s::jsonb)", whole), [json.dumps(fields)])
            with connection.cursor() as cursor, cursor.copy(_sql("COPY {} FROM STDIN", split)) as copy:
                for field, value in fields.items():
                    copy.write_row(("ann", field, value))
            connection.execute(_sql("ANALYZE {}, {}", whole, split))
            ways = {
                WHOLE: _sql("UPDATE {} SET content = jsonb_set(content, '{{phone}}', to_jsonb(%s::text))", whole),
                SPLIT: _sql("UPDATE {} SET value = %s WHERE user_id = 'ann' AND field = 'phone'", split),
            }
            rows += [(size, way, *its) for way, its in _timed(connection, ways, size).items()]
    return pd.DataFrame(rows, columns=["size", "way", "ms", "least", "most", "wal"])


def _repeats(size: int) -> int:
    return MORE if size <= SMALL else REPEATS


def _timed(
    connection: psycopg.Connection[Any], ways: Mapping[str, sql.Composed], size: int
) -> dict[str, tuple[float, float, float, float]]:
    taken: dict[str, list[float]] = {way: [] for way in ways}
    logged: dict[str, list[float]] = {way: [] for way in ways}
    for n in range(WARM + _repeats(size)):
        for way in sorted(ways, reverse=bool(n % 2)):
            before = _wal(connection)
            started = time.perf_counter()
            connection.execute(ways[way], [f"555-{n:04}"])
            taken[way].append(1e3 * (time.perf_counter() - started))
            logged[way].append(_wal(connection) - before)
    its = {way: taken[way][WARM:] for way in ways}
    return {
        way: (statistics.median(ms), min(ms), max(ms), statistics.median(logged[way][WARM:])) for way, ms in its.items()
    }


def _wal(connection: psycopg.Connection[Any]) -> float:
    row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return float(row[0])


@contextmanager
def _tables(url: str) -> Iterator[tuple[psycopg.Connection[Any], str, str]]:
    base = f"lesson_{uuid4().hex}"
    whole, split = f"{base}_whole", f"{base}_split"
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            connection.execute(_sql("CREATE TABLE {} (user_id text PRIMARY KEY, content jsonb)", whole))
            connection.execute(
                _sql("CREATE TABLE {} (user_id text, field text, value text, PRIMARY KEY (user_id, field))", split)
            )
            yield connection, whole, split
    finally:
        drop(url, base)


def _sql(text: str, *tables: str) -> sql.Composed:
    return sql.SQL(text).format(*map(sql.Identifier, tables))


def in_redis(url: str) -> pd.DataFrame:
    """A value written and read whole: size (bytes), what (SET or GET), ms (the median of 60, of 9 for what is large),
    least, most."""
    rows: list[tuple[Any, ...]] = []
    key = f"nb12:large:{uuid4().hex}"
    with redis.Redis.from_url(url, socket_timeout=20) as client:
        try:
            for size in REDIS_SIZES:
                value = b"x" * size
                ways: dict[str, Callable[[], Any]] = {
                    "SET": partial(client.set, key, value, ex=60),
                    "GET": partial(client.get, key),
                }
                for what, call in ways.items():
                    taken = [_ms(call) for _ in range(WARM + _repeats(size))][WARM:]
                    rows.append((size, what, statistics.median(taken), min(taken), max(taken)))
        finally:
            client.delete(key)
    return pd.DataFrame(rows, columns=["size", "what", "ms", "least", "most"])


def _ms(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - started)


def sentence(table: pd.DataFrame) -> str:
    """What was measured of C15."""
    few, many = (_ratios(table, size) for size in (min(table["size"]), max(table["size"])))
    small = "about as long as a row" if 2 / 3 <= few[0] <= 1.5 else f"{few[0]:.1f} times as long as a row"
    return (
        f"With {min(table['size']) / 1e3:.0f} kB the document takes {small} and writes {few[1]:.1f} times the "
        f"write-ahead log, with {max(table['size']) / 1e6:.0f} MB {many[0]:.0f} times as long and {many[1]:,.0f} times "
        "the log."
    )


def verdict(table: pd.DataFrame) -> Outcome:
    """Large is slow where the largest takes at least five times as long as a row, and the smallest doesn't."""
    few, many = (_ratios(table, size)[0] for size in (min(table["size"]), max(table["size"])))
    return "fails" if many < 5 else "holds" if few < 5 else "depends"


def _ratios(table: pd.DataFrame, size: int) -> tuple[float, float]:
    its = table[table["size"] == size].set_index("way")
    return its.ms[WHOLE] / its.ms[SPLIT], its.wal[WHOLE] / its.wal[SPLIT]
