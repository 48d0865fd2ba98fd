"""`python -m tri_memory.lab.export_nbgrader FOLDER`: the notebooks as nbgrader's sources, FOLDER/source/NN_name/.

A stub and its solution become one cell, the solution between nbgrader's marks; each `check` becomes a locked test that
gives as many points as the exercise has dots.
"""

from __future__ import annotations

import argparse
import ast
import re
from itertools import takewhile
from pathlib import Path
from typing import Any

from tri_memory.lab.exercises.kit import exercises_of
from tri_memory.lab.sources import KERNEL, cells_of, source_files

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
_CHECK = re.compile(r"""^check\((["'])(\d\d-\d)\1, .+\)$""")


def nbgrader_notebook(source: Path) -> Any:
    """The notebook of a source file, with nbgrader's metadata."""
    from nbformat import v4

    dots = {task.id: task.dots for task in exercises_of(source.name[:2])}
    cells, stub, exercise = [], "", 0
    for number, cell in enumerate(cells_of(source)):
        tags = cell.metadata.get("tags", [])
        text, metadata = cell.source, {}
        if "stub" in tags:
            stub = text
            continue
        if "solution" in tags:
            exercise += 1
            text = marked(stub, text)
            metadata = _nbgrader(f"answer-{source.stem[:2]}-{exercise}", solution=True)
        elif match := _CHECK.match(text.strip()):
            text = f"verdict = {text.strip()}\nassert verdict.passed, verdict.message\nverdict"
            metadata = _nbgrader(f"check-{match[2]}", grade=True, locked=True, points=dots[match[2]])
        make = v4.new_markdown_cell if cell.cell_type == "markdown" else v4.new_code_cell
        cells.append(make(text, id=f"{source.stem[:2]}-{number:03d}", metadata=metadata))
    return v4.new_notebook(cells=cells, metadata=KERNEL)


def marked(stub: str, solution: str) -> str:
    """The solution, marked from where it parts from the stub. A stub whose head can't stand alone goes before it whole,
    as a comment."""
    both = list(takewhile(lambda pair: pair[0] == pair[1], zip(stub.splitlines(), solution.splitlines(), strict=False)))
    head, tail = solution.splitlines()[: len(both)], solution.splitlines()[len(both) :]
    indent = next((line[: len(line) - len(line.lstrip())] for line in tail if line.strip()), "")
    try:
        ast.parse("\n".join([*head, f"{indent}raise NotImplementedError()"]))
    except SyntaxError:
        head, tail, indent = [f"# {line}".rstrip() for line in stub.splitlines()], solution.splitlines(), ""
    return "\n".join([*head, indent + BEGIN, *tail, indent + END])


def _nbgrader(grade_id: str, *, grade: bool = False, solution: bool = False, **more: Any) -> dict[str, Any]:
    fixed = {"schema_version": 3, "task": False, "locked": False}
    return {"nbgrader": {**fixed, "grade": grade, "solution": solution, "grade_id": grade_id, **more}}


def main() -> None:
    import nbformat

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="an nbgrader course folder")
    for source in source_files():
        folder = parser.parse_args().folder / "source" / source.stem
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(nbgrader_notebook(source), folder / f"{source.stem}.ipynb")
        print(folder / f"{source.stem}.ipynb")


if __name__ == "__main__":
    main()
