"""`tri-memory doctor --class`: one line that a teacher can trust, for each thing that a laptop may lack."""

from __future__ import annotations

import shutil
import socket
import sys
from importlib import import_module
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from typer.testing import CliRunner

from tri_memory import doctor
from tri_memory.cli import app
from tri_memory.commands import class_check
from tri_memory.doctor import Check

FINE = Check("python", "OK", "3.11")


@pytest.fixture
def checked(tmp_path, monkeypatch):
    """`doctor --class` with doctor's own checks and the notebooks left out, which have tests of their own."""
    monkeypatch.setattr(doctor, "checks", lambda env=None: iter([FINE]))
    monkeypatch.setattr(class_check, "RUN", ())

    def run() -> tuple[int, str]:
        result = CliRunner().invoke(app, ["doctor", "--class"], prog_name="tri-memory")
        return result.exit_code, result.output.splitlines()[-1]

    return run


def test_a_laptop_that_has_all_is_ready(checked, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr("tri_memory.lab.plots.installed_fonts", lambda: ["DejaVu Sans", "PingFang SC"])
    assert checked() == (0, "READY")


def no_port(*given):
    raise OSError(13, "Permission denied")


@pytest.mark.parametrize(
    ("target", "name", "value", "words"),
    [
        (shutil, "disk_usage", lambda folder: SimpleNamespace(free=300_000_000), ["disk space", "0.3 GB", "make room"]),
        (socket.socket, "bind", no_port, ["free ports", "Permission denied", "firewall"]),
        ("tri_memory.lab.plots", "installed_fonts", lambda: ["DejaVu Sans"], ["fonts for Chinese", "fonts-noto-cjk"]),
        (doctor, "checks", lambda: iter([Check("numpy", "FAIL", "pip install numpy")]), ["numpy: pip install numpy"]),
    ],
)
def test_what_a_laptop_lacks_is_named_in_the_last_line_with_what_to_do(
    checked, monkeypatch, target, name, value, words
):
    monkeypatch.setattr(import_module(target) if isinstance(target, str) else target, name, value)
    code, line = checked()
    assert (code, line[:11]) == (1, "NOT READY: ")
    assert all(word in line for word in words)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="these systems have a browser of their own")
def test_a_machine_without_a_browser_is_not_ready(checked, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    code, line = checked()
    assert (code, "browser: none of chromium" in line) == (1, True)


@pytest.mark.parametrize(
    ("cell", "end"),
    [
        ("import socket\nsocket.create_connection(('127.0.0.1', 1))", "refused"),
        ("import urllib.request\nurllib.request.urlopen('http://192.0.2.1/', timeout=5)", "the network is off"),
        ("1 + 1", "READY"),
    ],
)
def test_notebooks_are_really_run_with_the_network_off(checked, tmp_path, monkeypatch, cell, end):
    monkeypatch.setattr(class_check, "RUN", ("00",))
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr("tri_memory.lab.sources.NOTEBOOKS", tmp_path)
    nbformat.write(new_notebook(cells=[new_code_cell(cell)]), tmp_path / "00_a.ipynb")
    code, line = checked()
    assert end in line
    assert (code == 0) == (line == "READY")
    assert ("notebook 00: stopped without a network" in line) == (code == 1)


def test_a_clone_without_notebooks_says_how_to_make_them(checked, tmp_path, monkeypatch):
    monkeypatch.setattr(class_check, "RUN", ("00",))
    monkeypatch.setattr("tri_memory.lab.sources.NOTEBOOKS", tmp_path)
    assert "make notebooks" in checked()[1]
