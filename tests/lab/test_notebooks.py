"""Every notebook: built from its source, free of leaks, in the agreed form, run from top to bottom with no network."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import nbformat
import pytest

from tri_memory.lab import offline
from tri_memory.lab.build_notebooks import built, drift
from tri_memory.lab.exercises.kit import exercises_of
from tri_memory.lab.minutes import minutes
from tri_memory.lab.run_notebooks import execute
from tri_memory.lab.sources import NOTEBOOKS, cells_of, source_files

SOURCES = source_files()
STUDENT = [NOTEBOOKS / f"{source.stem}.ipynb" for source in SOURCES]
SOLVED = [NOTEBOOKS / "solutions" / path.name for path in STUDENT]
OFFLINE = offline.FOLDER
LOCAL_PATH = re.compile(r"/home/|/root/|/Users/|[A-Z]:\\\\|/tmp/")
HEADINGS = ("See it fail", "Turn the knob", "Measure", "Exercises", "What you saw")


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def read(path: Path):
    return nbformat.read(path, as_version=4)


def without_network(**extra: str) -> dict[str, str]:
    hidden = (
        "OPENAI_",
        "SESSION_STORE",
        "PREFERENCE_STORE",
        "EPISODIC_STORE",
        "MODEL_CONTEXT",
        "REDIS_URL",
        "DATABASE_URL",
    )
    kept = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    return kept | {"PYTHONPATH": str(OFFLINE), "NO_PROXY": "*", "PYTHONWARNINGS": "default"} | extra


def test_the_notebooks_on_disk_are_byte_for_byte_what_their_sources_give():
    assert drift() == []
    assert built() == built()


@pytest.mark.parametrize("path", [*STUDENT, *SOLVED], ids=name)
def test_a_notebook_carries_no_output_no_widget_state_and_no_path_of_an_authors_machine(path):
    notebook = read(path)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert not cell.get("execution_count")
        assert not LOCAL_PATH.search(cell.source)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_no_line_of_a_solution_is_in_the_student_notebook(source):
    cells = cells_of(source)
    is_solution = ["solution" in cell.metadata.get("tags", []) for cell in cells]
    shown = {
        line.strip()
        for cell, solved in zip(cells, is_solution, strict=True)
        if not solved
        for line in cell.source.splitlines()
    }
    secret = {
        line.strip()
        for cell, solved in zip(cells, is_solution, strict=True)
        if solved
        for line in cell.source.splitlines()
        if len(line.strip()) > 12
    } - shown
    assert len(secret) >= 3
    student = (NOTEBOOKS / f"{source.stem}.ipynb").read_text(encoding="utf-8")
    assert not [line for line in secret if line.replace('"', '\\"') in student]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_has_the_agreed_form(source):
    cells = cells_of(source)
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    assert re.match(r"# [A-Z]\w+ ", prose)
    assert "**What you will do**" in prose
    assert re.search(r"\d+ minutes", prose)
    for heading in HEADINGS:
        assert re.search(rf"^## {heading}", prose, re.MULTILINE), f"no section {heading!r}"
    assert "here the winner stops winning" in prose or source.name.startswith("00")
    tasks = exercises_of(source.name[:2])
    for task in tasks:
        assert any(f'check("{task.id}", ' in cell for cell in code), f"{task.id} is never checked"
        assert prose.count(task.id) >= 2, f"{task.id} is not named at the beginning and at the end"
    assert any(f'quiz("{source.name[:2]}")' in cell for cell in code)
    for cell in cells:
        lines = cell.source.splitlines()
        if cell.cell_type == "code" and "solution" not in cell.metadata.get("tags", []):
            assert len([line for line in lines if line.strip()]) <= 18, f"a long cell: {lines[0]}"
            assert max(map(len, lines)) <= 96, f"a long line: {max(lines, key=len)}"
            assert not re.search(
                r"pip install|apt(-get)? install|asyncio\.run\(|nest_asyncio|^%|^!", cell.source, re.MULTILINE
            )


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_minutes_in_notebook_and_readme_are_reckoned_and_not_guessed(source):
    reckoned = minutes(source)
    stated = re.search(r"About (\d+) minutes", source.read_text(encoding="utf-8"))
    assert stated
    assert int(stated[1]) == reckoned
    readme = (NOTEBOOKS.parent / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| {source.name[:2]} \| .*\| {reckoned} \|$", readme, re.MULTILINE)
    teaching = (NOTEBOOKS.parent / "docs/site/teaching.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| {source.name[:2]} \| {reckoned} \| ", teaching, re.MULTILINE)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_links_to_other_notebooks_exist_or_are_announced(source):
    prose = "\n".join(cell.source for cell in cells_of(source) if cell.cell_type == "markdown")
    for target in re.findall(r"\]\((\d\d_\w+)\.ipynb\)", prose):
        assert (NOTEBOOKS / f"{target}.ipynb").exists() or target[:2] > SOURCES[-1].name[:2], target


@pytest.mark.parametrize("path", STUDENT, ids=name)
def test_restart_and_run_all_reaches_the_last_cell_with_the_exercises_unsolved(path):
    run = execute(path, env=without_network())
    assert run.error == ""
    assert all(cell.execution_count for cell in run.notebook.cells if cell.cell_type == "code" and cell.source)
    assert _verdicts(run.notebook) == {"○ not yet"}


@pytest.mark.parametrize("path", SOLVED, ids=name)
def test_the_solutions_solve_every_exercise_and_each_cell_can_be_run_twice(path, tmp_path):
    twice = read(path)
    twice.cells = [
        nbformat.from_dict(dict(cell)) for cell in twice.cells for _ in range(2 if cell.cell_type == "code" else 1)
    ]
    for i, cell in enumerate(twice.cells):
        cell["id"] = f"cell-{i}"
    doubled = tmp_path / path.name
    nbformat.write(twice, doubled)
    run = execute(doubled, env=without_network())
    assert run.error == ""
    assert _verdicts(run.notebook) == {"✓ right"}
    assert not _stderr(run.notebook), _stderr(run.notebook)


def test_the_network_really_is_off_in_these_runs(tmp_path):
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell("import urllib.request\nurllib.request.urlopen('http://192.0.2.1/', timeout=5)")
        ]
    )
    nbformat.write(notebook, tmp_path / "online.ipynb")
    assert "the network is off" in execute(tmp_path / "online.ipynb", env=without_network()).error


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_no_cell_defines_what_belongs_in_the_package(source):
    for cell in cells_of(source):
        if cell.cell_type != "code" or {"stub", "solution"} & set(cell.metadata.get("tags", [])):
            continue
        tree = (
            ast.parse(cell.source, mode="exec")
            if "await " not in cell.source
            else ast.parse(_in_a_function(cell.source))
        )
        classes = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        assert not classes, f"a cell defines {classes}"


def _in_a_function(code: str) -> str:
    return "async def cell():\n" + "\n".join(f"    {line}" for line in code.splitlines())


def _verdicts(notebook) -> set[str]:
    html = "".join(
        output.get("data", {}).get("text/html", "")
        for cell in notebook.cells
        if cell.cell_type == "code" and "check(" in cell.source
        for output in cell.outputs
    )
    return set(re.findall(r"✓ right|○ not yet", html))


def _stderr(notebook) -> str:
    """What the cells wrote there, without the lines that say which server is taken or waited for."""
    written = "".join(
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stderr"
    )
    about_servers = re.compile(r"waiting for |.*; taking the embedded server\.")
    return "".join(line for line in written.splitlines(True) if not about_servers.match(line))
