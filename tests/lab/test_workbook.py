"""The learner's copy: made once, never overwritten, reset with a backup."""

from __future__ import annotations

import pytest

from tri_memory.lab import workbook
from tri_memory.lab.sources import source_files


def test_the_workbook_has_every_notebook_and_keeps_what_a_learner_wrote(tmp_path):
    folder = workbook.prepare(tmp_path)
    names = {path.name for path in folder.glob("*.ipynb")}
    assert names == {f"{source.stem}.ipynb" for source in source_files()}
    mine = sorted(folder.glob("02_*.ipynb"))[0]
    mine.write_text("my own work")
    (folder / "notes.txt").write_text("mine too")
    (sorted(folder.glob("*.ipynb"))[-1] if len(names) > 1 else mine).touch()
    workbook.prepare(tmp_path)
    assert mine.read_text() == "my own work"
    assert (folder / "notes.txt").exists()


def test_a_reset_puts_a_fresh_copy_and_keeps_the_old_one(tmp_path):
    folder = workbook.prepare(tmp_path)
    mine = sorted(folder.glob("02_*.ipynb"))[0]
    fresh = mine.read_bytes()
    mine.write_text("my own work")
    backup = workbook.reset("02", tmp_path)
    assert mine.read_bytes() == fresh
    assert backup.read_text() == "my own work"
    assert workbook.reset("02", tmp_path) != backup


@pytest.mark.parametrize("name", ["", "99", "nothing"])
def test_a_reset_of_an_unknown_notebook_names_the_known_ones(tmp_path, name):
    with pytest.raises(ValueError, match="02_write_from_many_places"):
        workbook.reset(name, tmp_path)
