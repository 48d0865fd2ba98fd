"""The lines of `tri-memory doctor` as a table."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Protocol

from tri_memory.lab.card import Card, folded
from tri_memory.lab.plots import GREEN, GREY, ORANGE

_COLOURS = {"OK": GREEN, "FAIL": ORANGE, "optional": GREY}


class Check(Protocol):
    """One line of the doctor: OK, FAIL or optional; what was looked at; what was found."""

    @property
    def status(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def detail(self) -> str: ...


def table(checks: Iterable[Check]) -> Card:
    """A line a check. Those of packages that are well stand folded under the others."""
    lines = list(checks)
    failed = [line for line in lines if line.status == "FAIL"]
    is_version = [line.status == "OK" and line.detail[:1].isdigit() and line.name != "python" for line in lines]
    open_lines = [line for line, version in zip(lines, is_version, strict=True) if not version]
    versions = [line for line, version in zip(lines, is_version, strict=True) if version]
    body = _rows(open_lines)
    if versions:
        body += folded(f"{len(versions)} packages, all OK", _rows(versions))
    title = f"{len(failed)} of {len(lines)} checks failed" if failed else "All well: this machine runs every notebook"
    plain = "\n".join(f"{line.status:8}  {line.name:28}  {line.detail}" for line in lines)
    return Card(title, body, plain, ORANGE if failed else GREEN)


def _rows(lines: Iterable[Check]) -> str:
    cells = "".join(
        f'<tr><td style="text-align:left;color:{_COLOURS[line.status]};font-weight:bold">{line.status}</td>'
        f'<td style="text-align:left">{html.escape(line.name)}</td>'
        f'<td style="text-align:left;overflow-wrap:anywhere">{html.escape(line.detail)}</td></tr>'
        for line in lines
    )
    return f'<table style="margin:.3em 0">{cells}</table>'
