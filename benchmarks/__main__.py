"""`python -m benchmarks`: the table of ratios, then how well the kit recalls; all of it also goes to RESULTS.md.

The exit code is 0 whether or not a goal is reached.
"""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from benchmarks import (
    cache,
    entities,
    imports,
    injection,
    memory_token,
    pgvector,
    quality,
    ranking,
    recall,
    redis_sessions,
    results,
    session,
    sweep,
)

PEERS = ("langchain-core", "langchain-community", "langchain-redis", "openai-agents")


def main() -> None:
    console = Console(width=150)
    table = Table("work", "ours (µs)", "beside", "theirs (µs)", "ratio", "goal", title="times, and ratios in pairs")
    for part in (
        session,
        recall,
        ranking,
        sweep,
        imports,
        redis_sessions,
        pgvector,
        entities,
        memory_token,
        cache,
        injection,
    ):
        with console.status(f"measuring {part.__name__.split('.')[-1]}"):
            for row in part.rows():
                mark = "" if row.reached else " (not reached)"
                table.add_row(
                    row.work,
                    f"{row.ours_us:,.2f}",
                    row.beside,
                    f"{row.beside_us:,.2f}",
                    f"{row.ratio:.3f}{mark}",
                    f"≤ {row.goal:.2f}" if row.goal < float("inf") else "",
                )
    peers = ", ".join(f"{package} {results.installed(package)}" for package in PEERS)
    printed: list[Table | str] = []
    for shown in (table, f"Peers (pip install -r benchmarks/peers.txt): {peers}.", *quality.tables()):
        console.print(shown)
        printed.append(shown)
    console.print(results.machine())
    console.print(f"written to {results.written(printed, f'{datetime.now(UTC):%Y-%m-%d}')}")


if __name__ == "__main__":
    main()
