"""Preferences as they lie in Postgres: the table of this kernel, its rows, and another process that reads them."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from uuid import uuid4

import pandas as pd
import psycopg
from psycopg import sql

from tri_memory.preference.postgres import PostgresPreferenceStore

CHILD_S = 60

_READ = """
import os
from tri_memory import PostgresPreferenceStore, blocking

store = blocking(PostgresPreferenceStore(os.environ["LESSON_URL"], table=os.environ["LESSON_TABLE"]))
print(f"process {os.getpid()} reads {store.all(os.environ['LESSON_USER'])}")
store.close()
"""


@cache
def own_table() -> str:
    """The name of a table that no other kernel has."""
    return f"lesson_06_{uuid4().hex[:12]}"


_opened: list[PostgresPreferenceStore] = []


async def instead_of_the_last(store: PostgresPreferenceStore) -> PostgresPreferenceStore:
    """`store`, after closing the one that this kernel was given before: a cell may run twice and leave nothing open."""
    while _opened:
        await _opened.pop().close()
    _opened.append(store)
    return store


def rows(url: str, table: str) -> pd.DataFrame:
    """The table as it is, in order of first writing; `ms between` is `updated_at` minus `created_at`."""
    query = sql.SQL(
        "SELECT user_id, key, value, created_at, updated_at, "
        "round(1000 * extract(epoch FROM updated_at - created_at), 1)::float8 FROM {} ORDER BY seq"
    )
    with psycopg.connect(url, connect_timeout=10) as connection:
        found = connection.execute(query.format(sql.Identifier(table))).fetchall()
    table_shown = pd.DataFrame(found, columns=["user_id", "key", "value", "created_at", "updated_at", "ms between"])
    for column in ("created_at", "updated_at"):
        table_shown[column] = [moment.strftime("%H:%M:%S.%f")[:-3] for moment in table_shown[column]]
    return table_shown


def drop(url: str, table: str) -> None:
    """Remove the table, if there is one."""
    with psycopg.connect(url, connect_timeout=10, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(table)))


def read_by_another_process(url: str, table: str, user: str) -> str:
    """What a Python started for this reads of `user`; RuntimeError with its last words, TimeoutExpired after 60 s."""
    # Through the environment, since every user of a machine may list the arguments of a process.
    settings = os.environ | {"LESSON_URL": url, "LESSON_TABLE": table, "LESSON_USER": user, "PYTHONIOENCODING": "utf-8"}
    child = subprocess.run(
        [sys.executable, "-c", _READ], env=settings, capture_output=True, encoding="utf-8", timeout=CHILD_S
    )
    if child.returncode:
        raise RuntimeError(f"the other process failed: {child.stderr.strip().splitlines()[-1:]}")
    return child.stdout.strip()
