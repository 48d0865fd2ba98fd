"""What the commands print, and to what."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import typer

from tri_memory.doctor import Check


def report(checks: Iterable[Check]) -> int:
    """Print each check when it is done; the exit code."""
    failed = 0
    for check in checks:
        colour = {"OK": "green", "FAIL": "red"}.get(check.status, "yellow")
        typer.echo(f"{typer.style(f'{check.status:8}', fg=colour)}  {check.name:30}  {check.detail}")
        failed += check.status == "FAIL"
    typer.echo(f"{failed} FAIL" if failed else "all well")
    return min(failed, 1)


def be_printable() -> None:
    """No character of a conversation may end the program, whatever the terminal's encoding; pipes carry UTF-8 in."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if not sys.stdin.isatty() and hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")


def read_line() -> str:
    """One line; EOFError at the end of the input. A pipe gets no prompt, so that its output is only answers."""
    if sys.stdin.isatty():
        return input("> ")
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line
