"""The table of claims: collected from executed notebooks, written, read again, and what the committed one says."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import nbformat
import pytest

from tri_memory.lab import claims_table, run_notebooks
from tri_memory.lab.claims import CLAIMS, claim
from tri_memory.lab.claims_table import NOT_MEASURED, TABLE, VERDICTS, Row, collect, read, table, write
from tri_memory.lab.run_notebooks import Run, execute

NOW = datetime(2026, 3, 4, tzinfo=UTC)
CELL = """from tri_memory.lab.claims import claim
claim("C03", measured="a | b\\n第二行", verdict="depends")"""


def executed(tmp_path, *cells):
    path = tmp_path / "03_x.ipynb"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(notebook, path)
    run = execute(path)
    assert run.error == ""
    return run.notebook


def test_a_claim_is_found_in_what_a_kernel_gave_and_each_that_is_missing_is_named(tmp_path):
    rows = collect({"03_x": executed(tmp_path, "1 + 1", CELL)})
    assert [row.id for row in rows] == sorted(CLAIMS)
    assert rows[2] == Row("C03", "03_x", "a | b\n第二行", "depends")
    assert {row.verdict for row in rows if row.id != "C03"} == {NOT_MEASURED}


def test_a_reader_sees_no_more_of_a_card_than_before():
    card = claim("C03", measured="<b>", verdict="holds")
    shown, metadata = card._repr_mimebundle_()
    assert shown == {"text/html": card._repr_html_(), "text/plain": repr(card)}
    assert "&lt;b&gt;" in shown["text/html"]
    assert shown["text/plain"].splitlines()[-1] == "Verdict: holds"
    assert metadata == {"tri_memory.claim": {"id": "C03", "measured": "<b>", "verdict": "holds"}}


def test_what_is_written_is_read_again_whatever_was_measured(tmp_path):
    path = tmp_path / "claims.md"
    rows = [
        Row("C01", "", "in no notebook of this run", NOT_MEASURED),
        Row("C03", "03_x", "a | b\n第二行", "cannot be tested here"),
    ]
    write(rows, path, now=NOW)
    assert "2026-03-04" in path.read_text(encoding="utf-8").splitlines()[2]
    assert read(path) == [rows[0], Row("C03", "03", "a | b 第二行", "cannot be tested here")]
    shown = table(path)
    assert "第二行" in shown.body
    assert "2026-03-04" in shown.body


def test_where_there_is_no_table_yet_the_card_says_what_makes_it(tmp_path):
    assert read(tmp_path / "none.md") == []
    assert "make run" in repr(table(tmp_path / "none.md"))


def test_a_line_that_was_written_by_hand_is_refused(tmp_path):
    path = tmp_path / "claims.md"
    write([], path, now=NOW)
    path.write_text(path.read_text(encoding="utf-8") + "| C01: I think so | yes | sure | me |\n", encoding="utf-8")
    with pytest.raises(ValueError, match="make run writes it anew"):
        read(path)


@pytest.mark.parametrize(("arguments", "written"), [([], True), (["--solutions"], False), (["one.ipynb"], False)])
def test_make_run_writes_the_table_and_a_run_of_a_part_leaves_it_alone(tmp_path, monkeypatch, arguments, written):
    monkeypatch.setattr(sys, "argv", ["run_notebooks", *arguments])
    monkeypatch.setattr(claims_table, "TABLE", tmp_path / "claims.md")
    monkeypatch.setattr(run_notebooks, "execute", lambda path: Run(path, 0.0, "", nbformat.v4.new_notebook()))
    assert run_notebooks.main() == 0
    assert (tmp_path / "claims.md").exists() is written


def test_the_committed_table_names_every_claim_and_each_verdict_is_a_legal_one():
    rows = read()
    assert sorted({row.id for row in rows}) == sorted(CLAIMS), f"{TABLE.name} is old: make run writes it anew"
    assert {row.verdict for row in rows} <= set(VERDICTS)
    assert all(row.measured for row in rows)
    assert rows == sorted(rows)
