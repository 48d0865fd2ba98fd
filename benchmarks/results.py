"""What a run printed, as benchmarks/RESULTS.md, with the machine and the versions: without them figures say nothing."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.table import Table

RESULTS = Path(__file__).with_name("RESULTS.md")
VERSIONS = ("tri-memory", "numpy", "redis", "psycopg", "pgvector", "bm25s", "networkx", "PyJWT", "starlette")


def written(parts: Sequence[Table | str], date: str, path: Path = RESULTS) -> Path:
    """`parts` in the order in which they were printed; the file, overwritten."""
    body = "\n\n".join(part if isinstance(part, str) else as_markdown(part) for part in parts)
    path.write_text(f"# Results of `make bench`, {date}\n\n{machine()}.\n\n{body}\n", encoding="utf-8")
    return path


def machine() -> str:
    """Processor, cores, memory, Python and the libraries that the figures depend on, in a line."""
    memory = f"{_memory_gib():.0f} GiB, " if hasattr(os, "sysconf") else ""
    libraries = ", ".join(f"{name} {installed(name)}" for name in VERSIONS)
    python = f"{platform.system()}, Python {platform.python_version()}"
    return f"{_processor()}, {os.cpu_count()} cores, {memory}{python}, {libraries}"


def installed(package: str) -> str:
    """The version, or "not installed"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def as_markdown(table: Table) -> str:
    """A rich table as a Markdown one, its title above."""
    columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in zip(*columns, strict=True)]
    head, *rows = [f"| {' | '.join(row)} |" for row in cells]
    title = [f"**{table.title}**", ""] if table.title else []
    return "\n".join([*title, head, "|" + "---|" * len(columns), *rows])


def _processor() -> str:
    named = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)$", named.read_text(), re.M) if named.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
