"""`tri-memory doctor --class`: all of doctor, and what a laptop needs for a lesson in a room without a network."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

import typer

from tri_memory import doctor
from tri_memory.commands import terminal
from tri_memory.doctor import Check, Finding

LEAST_FREE = 1_000_000_000  # bytes; the servers' folders and what learners make
PORTS = 20  # a kernel takes five, JupyterLab one, two servers one each
RUN = ("00", "05")  # one notebook that needs nothing, and one that starts a server
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "firefox", "microsoft-edge")


def checks() -> Iterator[Check]:
    """Doctor's checks, then those of a class; each made when it is asked for. The notebooks take up to a minute."""
    yield from doctor.checks()
    rest: list[tuple[str, Callable[[], Finding]]] = [
        ("disk space", _disk),
        ("free ports", _ports),
        ("fonts for Chinese", _fonts),
        ("browser", _browser),
        *((f"notebook {number}", lambda number=number: _runs(number)) for number in RUN),
    ]
    for name, check in rest:
        yield doctor.made(name, check)


def report() -> int:
    """Print each check, and last the one line for the person with the list of laptops; the exit code."""
    failed: list[str] = []
    code = terminal.report(_noted(checks(), failed))
    typer.echo(f"NOT READY: {'; '.join(failed)}" if failed else "READY")
    return code


def _noted(found: Iterable[Check], failed: list[str]) -> Iterator[Check]:
    for check in found:
        if check.status == "FAIL":
            failed.append(f"{check.name}: {check.detail}")
        yield check


def _disk() -> Finding:
    from tri_memory.lab.sources import NOTEBOOKS

    free = {str(folder): shutil.disk_usage(folder).free for folder in (NOTEBOOKS.parent, tempfile.gettempdir())}
    place, least = min(free.items(), key=lambda item: item[1])
    if least < LEAST_FREE:
        return "FAIL", f"{least / 1e9:.1f} GB free in {place}; make room for {LEAST_FREE / 1e9:.0f} GB"
    return "OK", f"{least / 1e9:.1f} GB free"


def _ports() -> Finding:
    try:
        with ExitStack() as stack:
            for _ in range(PORTS):
                listener = stack.enter_context(socket.socket())
                listener.bind(("127.0.0.1", 0))
                listener.listen()
    except OSError as error:
        return "FAIL", f"can't listen on {PORTS} ports of 127.0.0.1 ({error.strerror}): look at firewall and antivirus"
    return "OK", f"{PORTS} at once on 127.0.0.1"


def _fonts() -> Finding:
    from tri_memory.lab.plots import installed_fonts

    found = [name for name in installed_fonts() if name != "DejaVu Sans"]
    if not found:
        return "FAIL", "none that plots could use; install Noto Sans CJK (Debian, Ubuntu: apt install fonts-noto-cjk)"
    return "OK", found[0]


def _browser() -> Finding:
    if sys.platform in ("win32", "darwin"):
        webbrowser.get()
        return "OK", "the system's own"
    found = [name for name in BROWSERS if shutil.which(name)]
    return ("OK", found[0]) if found else ("FAIL", f"none of {', '.join(BROWSERS)}; install one")


def _runs(number: str) -> Finding:
    """The whole notebook in a kernel that reaches this machine only."""
    from tri_memory.lab.offline import without_network
    from tri_memory.lab.run_notebooks import execute
    from tri_memory.lab.sources import NOTEBOOKS

    path = next(NOTEBOOKS.glob(f"{number}_*.ipynb"), None)
    if path is None:
        return "FAIL", f"none in {NOTEBOOKS}; in a clone of the repository, run: make notebooks"
    run = execute(path, env=without_network(os.environ))
    if run.error:
        last = run.error.strip().splitlines()[-1]
        return "FAIL", f"stopped without a network: {last}; see it with: python -m tri_memory.lab.run_notebooks {path}"
    return "OK", f"ran without a network in {run.seconds:.0f} s"
