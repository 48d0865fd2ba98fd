"""The notebooks' source files: where they are, their cells, and the two notebooks that each of them becomes.

A source is a jupytext percent file. A cell tagged `stub` is what the learner fills; the cell tagged `solution` behind
it is one right answer. The student notebook has the stub, the solution notebook has the solution in its place.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_CHECKED = re.compile(r"check\(\s*[\"'](\d\d-\d)[\"']")


def source_files() -> list[Path]:
    """`notebooks/source/NN_name.py`, in order."""
    return sorted((NOTEBOOKS / "source").glob("[0-9][0-9]_*.py"))


def cells_of(source: Path) -> list[Any]:
    """The cells of a source file, each with `.cell_type`, `.source` and `.metadata.tags`."""
    import jupytext

    notebook = jupytext.reads(source.read_text(encoding="utf-8"), fmt="py:percent")
    cells = notebook.cells
    for i, cell in enumerate(cells):
        if _is(cell, "stub") and not (i + 1 < len(cells) and _is(cells[i + 1], "solution")):
            raise ValueError(f"{source.name}: the stub in cell {i} has no solution cell behind it")
        if _is(cell, "solution") and not (i and _is(cells[i - 1], "stub")):
            raise ValueError(f"{source.name}: the solution in cell {i} has no stub before it")
    return cells


def notebook_text(source: Path, *, solutions: bool) -> str:
    """The notebook as JSON text, the same bytes for the same source: no outputs, cell ids by position."""
    import nbformat
    from nbformat import v4

    dropped = "stub" if solutions else "solution"
    cells = []
    for number, cell in enumerate(cells_of(source)):
        if _is(cell, dropped):
            continue
        make = v4.new_markdown_cell if cell.cell_type == "markdown" else v4.new_code_cell
        kept_tags = [tag for tag in cell.metadata.get("tags", []) if tag != "solution"]
        metadata = {"tags": kept_tags} if kept_tags else {}
        cells.append(make(cell.source, id=f"{source.stem[:2]}-{number:03d}", metadata=metadata))
    notebook = v4.new_notebook(cells=cells, metadata=KERNEL)
    nbformat.validate(notebook)
    return nbformat.writes(notebook, version=4) + "\n"


def solution_of(exercise_id: str) -> str:
    """The text of the solution cell before `check("<exercise_id>", …)`; ValueError where there is none."""
    for source in source_files():
        if not source.name.startswith(exercise_id[:2]):
            continue
        latest = ""
        for cell in cells_of(source):
            if _is(cell, "solution"):
                latest = cell.source
            if exercise_id in _CHECKED.findall(cell.source) and not _is(cell, "stub") and latest:
                return latest
    raise ValueError(f"no solution of exercise {exercise_id!r} in {NOTEBOOKS / 'source'}")


def _is(cell: Any, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])
