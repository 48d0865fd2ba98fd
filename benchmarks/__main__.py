"""`python -m benchmarks`: the table of ratios, then how well the kit recalls.

The exit code is 0 whether or not a goal is reached.
"""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

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
    session,
    sweep,
)

PEERS = ("langchain-core", "langchain-community", "langchain-redis", "openai-agents")


def main() -> None:
    console = Console(width=150)
    table = Table("work", "ours (µs)", "beside", "theirs (µs)", "ratio", "goal", title=_machine())
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
    console.print(table)
    for package in PEERS:
        try:
            console.print(f"{package} {version(package)}")
        except PackageNotFoundError:
            console.print(f"{package} is not installed here: pip install -r benchmarks/peers.txt to see it beside ours")
    for quality_table in quality.tables():
        console.print(quality_table)


def _machine() -> str:
    return f"Python {platform.python_version()}, numpy {version('numpy')}, {platform.machine()} {platform.system()}"


if __name__ == "__main__":
    main()
