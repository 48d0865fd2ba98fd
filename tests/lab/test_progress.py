"""What is kept of a learner's progress, where, and what survives bad luck."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tri_memory.lab import progress as kept
from tri_memory.lab.exercises import check, hint, progress, reveal
from tri_memory.lab.exercises.kit import exercises_of
from tri_memory.lab.progress import MARKER, NAME, exercise_ids, load
from tri_memory.lab.sources import solution_of, source_files


@pytest.fixture
def workbook(tmp_path, monkeypatch):
    folder = tmp_path / "李 雷" / "workbook"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def right():
    names: dict = {}
    exec(solution_of("03-1"), names)
    return names["turns_to_fold"]


def test_tries_are_counted_until_the_exercise_is_solved_and_a_later_mistake_undoes_nothing(workbook):
    for given in (lambda *a: 0, lambda *a: "", right(), lambda *a: 0, right()):
        check("03-1", given)
    entry = load(workbook)["03-1"]
    assert entry["tries"] == 3
    assert entry["first_try"] <= entry["solved"]
    assert (entry["hints"], entry["revealed"]) == (0, False)


def test_an_untouched_stub_is_no_try(workbook):
    def stub(*given):
        raise NotImplementedError

    for given in (..., None, stub):
        check("03-1", given)
    assert os.listdir(workbook) == []


def test_hints_count_by_the_highest_and_a_reveal_is_noted(workbook):
    for step in (2, 1):
        hint("03-1", step)
    reveal("03-2")
    entries = load(workbook)
    assert (entries["03-1"]["hints"], entries["03-1"]["tries"], entries["03-1"]["solved"]) == (2, 0, None)
    assert (entries["03-2"]["hints"], entries["03-2"]["revealed"]) == (0, True)


def test_nothing_of_the_learners_code_is_in_the_file(workbook):
    def secret_name(*given):
        raise RuntimeError("secret text")

    check("03-1", secret_name)
    assert "secret" not in (workbook / NAME).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["notebooks", "tests", "clone", "workbook2"])
def test_outside_a_workbook_nothing_is_written_and_the_table_says_so(tmp_path, monkeypatch, name):
    folder = tmp_path / "workbook" / name
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    check("03-1", right())
    hint("03-1")
    assert not list(folder.iterdir())
    assert not list(folder.parent.glob("*.json"))
    assert "tri-memory lab" in repr(progress())
    (folder / MARKER).touch()
    check("03-1", right())
    assert load(folder)["03-1"]["solved"]


def test_a_folder_that_was_deleted_under_the_kernel_ends_nothing(workbook):
    workbook.rmdir()
    assert check("03-1", right()).passed
    assert "tri-memory lab" in repr(progress())


@pytest.mark.parametrize(
    "broken",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"exercises": 3}', b'{"exercises": {"03-1": {"tries": "x"}}}', b"[" * 100_000],
)
def test_a_broken_file_is_set_aside_with_a_line_and_the_verdict_comes_all_the_same(workbook, capsys, broken):
    (workbook / NAME).write_bytes(broken)
    assert "can't be read" in progress()._repr_html_()
    assert check("03-1", right()).passed
    assert "a new one begins" in capsys.readouterr().err
    (aside,) = workbook.glob("progress.broken-*.json")
    assert aside.read_bytes() == broken
    assert load(workbook)["03-1"]["solved"]


def test_a_file_that_cant_be_written_is_a_line_and_the_old_one_stays_whole(workbook, capsys, monkeypatch):
    check("03-1", lambda *a: 0)
    before = (workbook / NAME).read_bytes()

    def full(*given, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json, "dump", full)
    assert check("03-1", right()).passed
    assert "No space left" in capsys.readouterr().err
    assert (workbook / NAME).read_bytes() == before
    assert not list(workbook.glob(".progress-*"))


def test_a_kernel_that_holds_the_lock_too_long_is_a_line(workbook, capsys, monkeypatch):
    monkeypatch.setattr(kept, "WAIT_S", 0.05)
    with kept._alone(workbook / f".{NAME}.lock"):
        assert check("03-1", right()).passed
    assert "another kernel" in capsys.readouterr().err
    check("03-1", right())
    assert load(workbook)["03-1"]["solved"]


def test_two_kernels_at_once_lose_nothing(workbook):
    code = (
        "import sys\nfrom tri_memory.lab.progress import note_hint, note_try\n"
        "for i in range(60):\n    note_try('03-1', False)\n    note_hint(f'{sys.argv[1]}-{i % 9}', 1)"
    )
    root = str(Path(kept.__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": root}
    both = [subprocess.Popen([sys.executable, "-c", code, chapter], cwd=workbook, env=env) for chapter in ("04", "05")]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    entries = load(workbook)
    assert entries["03-1"]["tries"] == 120
    assert len(entries) == 1 + 2 * 9


def test_the_table_has_a_row_for_every_notebook_and_counts(workbook):
    check("03-1", lambda *a: 0)
    check("03-1", right())
    hint("03-1", 3)
    reveal("03-2")
    rows = {line.split()[0]: line.split()[1:] for line in repr(progress()).splitlines()[2:]}
    assert list(rows) == [source.stem for source in source_files()]
    total = len(exercises_of("03"))
    assert rows["03_compress_by_count"] == ["1", "of", str(total), "2", "3", "and", "answers"]
    assert rows["00_start_here"] == ["0", "of", "3", "0", "0"]
    assert progress()._repr_html_().count("<tr>") == 1 + len(rows)


@pytest.mark.parametrize("source", source_files(), ids=lambda path: path.stem)
def test_the_ids_that_the_table_counts_are_the_exercises_there_are(source):
    assert exercise_ids(source) == [task.id for task in exercises_of(source.name[:2])]
