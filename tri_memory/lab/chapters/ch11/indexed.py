"""A table of users' records that is large enough for a plan to matter, and the plan with and without its index."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pandas as pd
import psycopg

from tri_memory.blocking_calls import run
from tri_memory.clock import system_clock
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.lab.chapters.ch11.tables import drop

USERS, CASES = 100, 300  # half of each user's cases are put away
LAST_WEEK = """
SELECT entity_id FROM {table}
WHERE user_id = 'user-7' AND is_active AND memory_type = 'case' AND updated_at >= %s
ORDER BY updated_at DESC, id DESC LIMIT 20
"""


def compare(url: str) -> pd.DataFrame:
    """`plans`, of a table of its own that goes at the end."""
    table, now = f"lesson_{uuid4().hex}", system_clock()
    try:
        return plans(url, run(filled(url, table, now)), now)
    finally:
        drop(url, table)


async def filled(url: str, table: str, now: datetime) -> str:
    """`table`, with 30,000 cases, four a day and user; the store that made it is closed again."""
    async with await PostgresUserMemoryStore.connect(url, table=table):
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            connection.execute(
                f"INSERT INTO {table} (user_id, memory_type, entity_id, content, created_at, updated_at, is_active) "
                "SELECT 'user-' || u, 'case', 'BX-' || (2000 + c), '{}'::jsonb, at, at, c %% 2 = 0 "
                "FROM generate_series(1, %(users)s) AS u, generate_series(1, %(cases)s) AS c, "
                "LATERAL (SELECT %(now)s - c * interval '6 hours' AS at) AS time ON CONFLICT DO NOTHING",
                {"users": USERS, "cases": CASES, "now": now},
            )
            connection.execute(f"ANALYZE {table}")
    return table


def plans(url: str, table: str, now: datetime) -> pd.DataFrame:
    """How Postgres finds one user's cases of the last week: with all indexes, without the partial one, without the
    other one as well. Indexes are dropped in a transaction that is rolled back."""
    rows = []
    with psycopg.connect(url, connect_timeout=10) as connection:
        for name, without in (("all indexes", None), ("without _recent", "recent"), ("nor _entity", "entity")):
            if without:
                connection.execute(f"DROP INDEX {table}_{without}")
            runs = [_explained(connection, table, now - timedelta(days=7)) for _ in range(5)]
            rows.append((name, *min(runs, key=lambda run: run[-1])))
        connection.rollback()
    return pd.DataFrame(rows, columns=["", "the table is read by", "rows thrown away", "pages", "ms"]).set_index("")


def _explained(connection: psycopg.Connection[Any], table: str, since: datetime) -> tuple[str, int, int, float]:
    query = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {LAST_WEEK.format(table=table)}"
    row = connection.execute(query, [since]).fetchone()
    assert row is not None
    [plan] = row[0]
    nodes = list(_nodes(plan["Plan"]))
    reads = next(node for node in nodes if "Scan" in node["Node Type"] and "Bitmap Index" not in node["Node Type"])
    index = next((node["Index Name"] for node in nodes if "Index Name" in node), None)
    return (
        f"{reads['Node Type'].lower()}{f', {index.removeprefix(table)}' if index else ''}",
        sum(node.get("Rows Removed by Filter", 0) for node in nodes),
        plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"],
        round(plan["Execution Time"], 3),
    )


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for part in plan.get("Plans", []) for node in _nodes(part))]
