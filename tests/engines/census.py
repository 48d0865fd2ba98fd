"""Who is there? The processes, folders and containers that belong to one folder for temporary files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import needs

GONE_S = 20.0


@contextmanager
def own_place() -> Iterator[Path]:
    """A folder for TMPDIR, so that what is started in a test can be told from what others run on the machine.

    Not below pytest's own folder: an ordinary user, who runs PostgreSQL for root, may not enter that.
    """
    with tempfile.TemporaryDirectory(prefix="census-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def processes(place: Path) -> set[str]:
    """Every running process that was started with `place` in its command or that works inside it."""
    psutil = needs("psutil", "pip install psutil")
    found = set()
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            words = [*process.cmdline(), process.cwd()]
        except psutil.Error:
            continue
        if any(str(place) in word for word in words):
            found.add(f"{process.pid} {' '.join(words)[:120]}")
    return found


def folders(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()}


def containers(name: str) -> list[str]:
    docker = needs("docker", "pip install testcontainers")
    client = docker.from_env(timeout=10)
    try:
        return [found.name for found in client.containers.list(all=True, filters={"name": name})]
    finally:
        client.close()


def eventually(nothing_left: Callable[[], object], what: str) -> None:
    """Fail, naming what is left, when something still is after `GONE_S` seconds."""
    ends = time.monotonic() + GONE_S
    while left := nothing_left():
        if time.monotonic() > ends:
            pytest.fail(f"{what} left behind: {left}")
        time.sleep(0.1)


def start_script(place: Path, source: str, **settings: str) -> subprocess.Popen[str]:
    """Another Python, as a notebook kernel is: in a process group of its own, with `place` for temporary files."""
    environment = {**os.environ, "TMPDIR": str(place), "PYTHONPATH": str(Path(__file__).parents[2]), **settings}
    environment.pop("REDIS_URL", None)
    environment.pop("DATABASE_URL", None)
    return subprocess.Popen(
        [sys.executable, "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
