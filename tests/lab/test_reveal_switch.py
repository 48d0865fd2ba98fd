"""A teacher switches `reveal` off; hints stay."""

from __future__ import annotations

import pytest

from tri_memory.lab.exercises import hint, reveal
from tri_memory.lab.progress import MARKER, load
from tri_memory.lab.reveal_switch import VARIABLE


@pytest.fixture(autouse=True)
def workbook(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    folder = tmp_path / "workbook"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def is_off(who: str) -> bool:
    card = repr(reveal("03-1"))
    shown = "keep_recent" in card
    assert shown != (who in card)
    assert ("reveal(" in repr(hint("03-1", 3))) is shown
    assert "keep_recent" in repr(hint("03-1", 3))
    return not shown


@pytest.mark.parametrize(("value", "off"), [("off", True), (" OFF ", True), ("of", True), ("on", False), ("", False)])
def test_the_variable_switches_reveal_off_and_says_so(monkeypatch, workbook, value, off):
    monkeypatch.setenv(VARIABLE, value)
    assert is_off(f"{VARIABLE}={value.strip()}") is off
    assert load(workbook)["03-1"]["revealed"] is not off


@pytest.mark.parametrize(
    ("text", "off"),
    [
        ("reveal = off\n", True),
        ("\ufeffclass = 7b\r\nREVEAL=Off", True),
        ("reveal = on\n", False),
        ("", False),
        ("# no reveal off here", False),
    ],
)
def test_a_line_in_the_workbook_switches_reveal_off_and_says_so(workbook, text, off):
    (workbook / MARKER).write_bytes(text.encode())
    assert is_off(f"in the file {MARKER} of this folder") is off


def test_a_file_that_is_no_text_switches_nothing(workbook):
    (workbook / MARKER).write_bytes(b"\xff\xfe\x00reveal=off")
    assert not is_off(MARKER)


def test_the_file_counts_only_in_a_workbook(tmp_path, monkeypatch, workbook):
    (workbook / MARKER).write_text("reveal=off")
    monkeypatch.chdir(tmp_path)
    assert not is_off(MARKER)
