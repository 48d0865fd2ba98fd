"""`tri-memory collect`: a folder of returned notebooks as one table, a row for each exercise of each learner."""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path

from tri_memory.lab.collect import judge, notebooks_in

COLUMNS = ("learner", "notebook", "exercise", "solved", "found")
MOST_CHARACTERS = 300


def write(folder: Path, output: Path | None, limit_s: float, say: Callable[[str], None]) -> None:
    """Write the CSV of `folder` to `output`, or to standard output, row by row."""
    pieces = collected(folder, limit_s, say)
    first = next(pieces)  # before the file is touched: the folder may be the wrong one
    with open(output, "wb") if output else nullcontext(sys.stdout.buffer) as stream:
        for piece in chain([first], pieces):
            stream.write(piece)
            stream.flush()


def collected(folder: Path, limit_s: float, say: Callable[[str], None]) -> Iterator[bytes]:
    """The CSV in pieces, as soon as they are known: UTF-8 with the mark that Excel wants. `say` hears of each notebook.

    ValueError where the folder has no notebook.
    """
    found = notebooks_in(folder)
    if not found:
        raise ValueError(f"no notebook (.ipynb) in {folder}")
    yield _line(COLUMNS).encode("utf-8-sig")
    for learner, path in found:
        started = time.monotonic()
        results = list(judge(learner, path, limit_s))
        for one in results:
            row = (one.learner, one.notebook, one.exercise, "yes" if one.solved else "no", one.found)
            yield _line(row).encode("utf-8", errors="replace")
        solved = sum(one.solved for one in results)
        say(f"{learner}: {path.name}: {solved} of {len(results)} in {time.monotonic() - started:.0f} s")


def _line(row: tuple[str, ...]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow([_cell(value) for value in row])
    return text.getvalue()


def _cell(value: str) -> str:
    """One line, and no formula: a spreadsheet runs what begins with one of these signs."""
    line = " ".join(value.split())
    line = line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]}…"
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line
