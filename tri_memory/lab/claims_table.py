"""The table of all claims, `notebooks/claims.md`: read from executed notebooks, written by `make run`.

A card that `claim` makes carries its claim in the metadata of the cell's output, where no reader sees it and no front
end has to know a format.
"""

from __future__ import annotations

import html
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from tri_memory.lab.card import Card
from tri_memory.lab.claims import CLAIMS, METADATA, Outcome
from tri_memory.lab.sources import NOTEBOOKS

TABLE = NOTEBOOKS / "claims.md"  # not the working folder: a workbook's notebook reads the same file
NOT_MEASURED = "not measured"
VERDICTS = (*get_args(Outcome), NOT_MEASURED)
_LINE = re.compile(r"^\| (C\d\d): (.*?) \| (.*?) \| ([a-z ]+) \| (?:\[(\d\d)\]\(\w+\.ipynb\)|–) \|$")


@dataclass(frozen=True, order=True)
class Row:
    """A claim as one notebook measured it; `notebook` is its file's stem, "" where none did."""

    id: str
    notebook: str
    measured: str
    verdict: str


def collect(notebooks: Mapping[str, Any]) -> list[Row]:
    """The claims in the outputs of executed notebooks, by the stem of their file. What none measured is named too."""
    found = [Row(notebook=stem, **claim) for stem, notebook in notebooks.items() for claim in _claims_in(notebook)]
    missing = CLAIMS.keys() - {row.id for row in found}
    return sorted([*found, *(Row(id, "", "in no notebook of this run", NOT_MEASURED) for id in missing)])


def _claims_in(notebook: Any) -> Iterable[dict[str, str]]:
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if METADATA in output.get("metadata", {}):
                yield output["metadata"][METADATA]


def write(rows: Iterable[Row], path: Path | None = None, *, now: datetime | None = None) -> None:
    """The table as Markdown, with the machine and the day above it."""
    when = now or datetime.now().astimezone()
    machine = (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    )
    lines = [
        "# The claims, and what was measured",
        "",
        f"Measured on {when:%Y-%m-%d} ({machine}) by “make run”, which writes this table anew. Times vary by machine.",
        "",
        "| claim | measured here | verdict | notebook |",
        "|---|---|---|---|",
        *map(_line, rows),
    ]
    (path or TABLE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line(row: Row) -> str:
    measured = " ".join(row.measured.split()).replace("|", "\\|")
    where = f"[{row.notebook[:2]}]({row.notebook}.ipynb)" if row.notebook else "–"
    return f"| {row.id}: {CLAIMS[row.id]} | {measured} | {row.verdict} | {where} |"


def read(path: Path = TABLE) -> list[Row]:
    """What `write` wrote, the notebook by its number; [] where there is no such file yet. ValueError for a line that is
    none of the table's."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = []
    for line in lines[lines.index("|---|---|---|---|") + 1 :]:
        found = _LINE.match(line)
        if not found:
            raise ValueError(f"{path.name} has a line that is no claim's: {line[:60]!r}; make run writes it anew")
        rows.append(Row(found[1], found[5] or "", found[3].replace("\\|", "|"), found[4]))
    return rows


def table(path: Path = TABLE) -> Card:
    """The table as a notebook shows it, or what makes it."""
    rows = read(path)
    if not rows:
        return Card("No table yet", "<p>make run writes notebooks/claims.md</p>", "make run writes notebooks/claims.md")
    above = path.read_text(encoding="utf-8").splitlines()[2]
    cells = "".join(
        f"<tr>{_cell(f'{r.id}: {CLAIMS[r.id]}')}{_cell(r.verdict)}{_cell(r.measured)}{_cell(r.notebook or '–')}</tr>"
        for r in rows
    )
    heads = "".join(
        f"<th style='text-align:left'>{head}</th>" for head in ("claim", "verdict", "measured here", "notebook")
    )
    plain = "\n".join(f"{row.id} {row.verdict} ({row.notebook or '–'}): {row.measured}" for row in rows)
    return Card(
        "The claims, and what was measured", f"<p>{html.escape(above)}</p><table><tr>{heads}</tr>{cells}</table>", plain
    )


def _cell(text: str) -> str:
    return f"<td style='text-align:left;vertical-align:top'>{html.escape(text)}</td>"
