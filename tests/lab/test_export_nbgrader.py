"""The notebooks in nbgrader's form: what it cuts out is the solution, and what is left can be run."""

from __future__ import annotations

import ast
import re

import pytest

from tri_memory.lab.exercises.kit import exercises_of
from tri_memory.lab.export_nbgrader import BEGIN, END, marked, nbgrader_notebook
from tri_memory.lab.sources import source_files


def as_released(code: str) -> str:
    """What nbgrader hands out."""
    cut = rf"^( *){BEGIN}.*?{END}$"
    return re.sub(cut, r"\1# YOUR CODE HERE\n\1raise NotImplementedError()", code, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("source", source_files(), ids=lambda path: path.stem)
def test_every_exercise_has_an_answer_cell_without_its_solution_and_a_locked_test_with_points(source):
    cells = nbgrader_notebook(source).cells
    graded = {c.metadata.nbgrader.grade_id: c for c in cells if "nbgrader" in c.metadata}
    tests = {id: cell for id, cell in graded.items() if cell.metadata.nbgrader.grade}
    answers = [cell for cell in graded.values() if cell.metadata.nbgrader.solution]
    assert {id: c.metadata.nbgrader.points for id, c in tests.items()} == {
        f"check-{task.id}": task.dots for task in exercises_of(source.name[:2])
    }
    assert all(cell.metadata.nbgrader.locked and "assert verdict.passed" in cell.source for cell in tests.values())
    assert len(answers) + len(tests) == len(graded)
    assert len(answers) >= 3
    for cell in answers:
        ast.parse(cell.source)
        ast.parse(released := as_released(cell.source))
        assert "raise NotImplementedError()" in released
        assert len(released.splitlines()) < len(cell.source.splitlines()) + 12


def test_a_stub_whose_head_cant_stand_alone_goes_before_the_solution_as_a_comment():
    assert marked("a = {\n  1: ...,\n}", "a = {\n  1: 2,\n}").splitlines()[:4] == [
        "# a = {",
        "#   1: ...,",
        "# }",
        BEGIN,
    ]
    assert marked("def f():\n    pass", "def f():\n    return 1") == f"def f():\n    {BEGIN}\n    return 1\n    {END}"
