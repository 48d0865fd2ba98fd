"""`make run`: execute every notebook headless in a kernel of its own, print a table, and write that of the claims."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from rich.console import Console
from rich.table import Table

from tri_memory.lab import claims_table
from tri_memory.lab.sources import NOTEBOOKS

LIMIT_S = 120  # for one cell; the slowest takes a few seconds


@dataclass(frozen=True)
class Run:
    """One executed notebook. `error` is the end of the failing cell's traceback, or ""."""

    path: Path
    seconds: float
    error: str
    notebook: Any


def execute(path: Path, *, env: dict[str, str] | None = None) -> Run:
    """Run all cells of the notebook at `path` in a fresh kernel, in its own folder; nothing is written."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = nbformat.read(path, as_version=4)
    started = time.perf_counter()
    client = NotebookClient(
        notebook, timeout=LIMIT_S, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    )
    error = ""
    try:
        client.execute(env=env if env is not None else dict(os.environ))
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as failure:
        error = str(failure)
    return Run(path, time.perf_counter() - started, error, notebook)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, help="which (default: all of notebooks/)")
    parser.add_argument("--solutions", action="store_true", help="the solution notebooks instead")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep the executed notebooks there")
    options = parser.parse_args()
    folder = NOTEBOOKS / "solutions" if options.solutions else NOTEBOOKS
    paths = options.notebooks or sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    console = Console()
    table = Table("notebook", "seconds", "ok", title=f"{len(paths)} notebooks")
    runs = []
    for path in paths:
        with console.status(f"running {path.name}"):
            run = execute(path)
        runs.append(run)
        table.add_row(path.stem, f"{run.seconds:.1f}", "no" if run.error else "yes")
        if options.save:
            options.save.mkdir(parents=True, exist_ok=True)
            nbformat.write(run.notebook, options.save / path.name)
    console.print(table)
    if not (options.notebooks or options.solutions):  # a part of the series would be a part of the claims
        claims_table.write(claims_table.collect({run.path.stem: run.notebook for run in runs}))
    for run in runs:
        if run.error:
            console.print(f"\n{run.path.name}\n", run.error[-2_000:], markup=False, highlight=False)
    return 1 if not runs or any(run.error for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
