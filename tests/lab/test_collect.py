"""Returned notebooks, of all kinds that learners hand in, become one table that no stored output can change."""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from typer.testing import CliRunner

from tri_memory.cli import app
from tri_memory.lab import collect
from tri_memory.lab.collect import notebooks_in
from tri_memory.lab.sources import NOTEBOOKS, solution_of

RIGHT = solution_of("03-1")
CHECK = 'from tri_memory.lab.exercises import check\ncheck("03-1", turns_to_fold)'
WRONG = RIGHT.replace("> compress_after", ">= compress_after")


def hand_in(path: Path, *cells: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=[new_code_cell(cell) for cell in cells]), path)
    return path


def rows(folder: Path, *options: str) -> tuple[list[dict[str, str]], str]:
    result = CliRunner().invoke(app, ["collect", str(folder), *options], prog_name="tri-memory")
    assert result.exit_code == 0, result.output
    text = result.stdout_bytes.decode("utf-8")
    assert text.startswith("\ufeff")
    return list(csv.DictReader(text[1:].splitlines())), result.stderr


def judged(path: Path, limit_s: float = 60) -> dict[str, tuple[bool, str]]:
    return {one.exercise: (one.solved, one.found) for one in collect.judge("ann", path, limit_s)}


def test_a_learners_right_and_wrong_answers_are_rows_in_a_csv_for_excel(tmp_path):
    assert WRONG != RIGHT
    hand_in(tmp_path / "李 雷" / "03_a b.ipynb", RIGHT, CHECK)
    hand_in(tmp_path / "=cmd|x.ipynb", WRONG, CHECK)
    table, said = rows(tmp_path)
    assert [(row["learner"], row["exercise"], row["solved"]) for row in table] == [
        ("'=cmd|x", "03-1", "no"),
        ("'=cmd|x", "03-2", "no"),
        ("'=cmd|x", "03-3", "no"),
        ("李 雷", "03-1", "yes"),
        ("李 雷", "03-2", "no"),
        ("李 雷", "03-3", "no"),
    ]
    assert "nothing happens yet" in table[0]["found"]
    assert "own_summary" in table[1]["found"] or "NameError" in table[1]["found"]
    assert "李 雷: 03_a b.ipynb: 1 of 3" in said


def test_stored_outputs_and_a_check_of_the_learners_own_count_for_nothing(tmp_path):
    cell = new_code_cell("def check(id, answer):\n    print('✓ right')\ncheck('03-1', 3)")
    cell.outputs = [new_output("stream", text="✓ right RIGHT 03-1")]
    nbformat.write(new_notebook(cells=[cell]), tmp_path / "03_x.ipynb")
    assert not any(solved for solved, _ in judged(tmp_path / "03_x.ipynb").values())


def test_one_broken_cell_does_not_hide_a_right_answer_and_a_lost_check_is_asked_all_the_same(tmp_path):
    path = hand_in(tmp_path / "03_x.ipynb", "1 / 0", "def f(:", RIGHT, "input('?')", "turns_to_fold")
    assert judged(path)["03-1"][0]


def test_a_notebook_that_hangs_is_stopped_with_its_children_and_keeps_what_was_right_before(tmp_path):
    child = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(987)'])"
    path = hand_in(tmp_path / "03_x.ipynb", RIGHT, CHECK, child, "while True:\n    print('x' * 1000)")
    started = time.monotonic()
    found = judged(path, limit_s=7)
    assert time.monotonic() - started < 60
    assert found["03-1"][0]
    assert found["03-2"] == (False, "not reached: the notebook was stopped after 7 s")
    left = [p for p in psutil.process_iter(["cmdline"]) if "time.sleep(987)" in " ".join(p.info["cmdline"] or ())]
    assert not left


def test_a_notebook_that_ends_its_kernel_is_a_row(tmp_path):
    path = hand_in(tmp_path / "03_x.ipynb", "import os\nos._exit(3)", RIGHT, CHECK)
    assert {found for _, found in judged(path).values()} == {"not reached: the notebook ended its own kernel"}


def test_secrets_network_home_and_the_table_itself_are_out_of_reach(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    looks = (
        "import os, pathlib, socket\nfound = [k for k, v in os.environ.items() if v == 'sk-secret']\n"
        "found += [] if os.listdir(pathlib.Path.home()) == os.listdir('.') else ['home']\n"
        "try:\n    socket.create_connection(('192.0.2.1', 80), timeout=3)\nexcept OSError as error:\n"
        "    found += [] if 'network is off' in str(error) else ['network']\n"
        "os.system('echo Mallory,03-1,yes')\nos.system('echo Mallory,03-1,yes >&2')\n"
        "turns_to_fold = lambda *a: (_ for _ in ()).throw(RuntimeError(f'found {found}'))"
    )
    path = hand_in(tmp_path / "03_x.ipynb", looks, CHECK)
    before = path.read_bytes()
    assert judged(path)["03-1"] == (False, "checker: Your code raised RuntimeError: found []")
    written = capfd.readouterr()
    assert "Mallory" not in written.out + written.err
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["03_x.ipynb"]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "no notebook"),
        (b"{", "no notebook"),
        (b"[1]", "not run"),
        (b'{"cells": 3, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "not run"),
        (b"\xff\xfe\x00", "not run"),
        (b'{"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "no exercise of this series"),
    ],
)
def test_a_file_that_is_no_notebook_of_ours_is_a_row_that_says_so(tmp_path, content, word):
    (tmp_path / "ann.ipynb").write_bytes(content)
    table, _ = rows(tmp_path)
    assert [(row["learner"], row["exercise"], row["solved"]) for row in table] == [("ann", "", "no")]
    assert word in table[0]["found"]


def test_a_notebook_as_it_was_handed_out_is_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr(collect, "_run", None)
    found = judged(NOTEBOOKS / "03_compress_by_count.ipynb")
    assert set(found.values()) == {(False, "not run: every stub is as it was handed out")}
    assert len(found) == 3


def test_checkpoints_and_backups_are_passed_over_and_learners_are_named_by_folder_or_file(tmp_path):
    for name in (
        "ann/workbook/03_x.ipynb",
        "ann/.ipynb_checkpoints/03_x-checkpoint.ipynb",
        "ann/03_x.20260105-101010-000001.ipynb",
        "晓蓓.ipynb",
    ):
        hand_in(tmp_path / name, "1")
    assert [(learner, path.name) for learner, path in notebooks_in(tmp_path)] == [
        ("ann", "03_x.ipynb"),
        ("晓蓓", "晓蓓.ipynb"),
    ]


def test_a_folder_without_notebooks_is_an_error_and_no_file_is_begun(tmp_path):
    there = tmp_path / "results.csv"
    there.write_text("old")
    result = CliRunner().invoke(app, ["collect", str(tmp_path / "gone"), "-o", str(there)], prog_name="tri-memory")
    assert (result.exit_code, "no notebook (.ipynb) in" in result.stderr) == (1, True)
    assert there.read_text() == "old"


def test_the_help_says_that_strangers_code_is_run():
    said = " ".join(CliRunner().invoke(app, ["collect", "--help"], prog_name="tri-memory").output.split())
    assert "THIS RUNS CODE THAT OTHERS WROTE" in said
