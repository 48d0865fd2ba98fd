"""The owner's end of the rope to a watchman (watch.py): start it, ask it, let it go."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tri_memory.engines import watch
from tri_memory.engines.patience import Limit, within


class Guard:
    """A folder and the servers in it, which both go when this process does, however it ends."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tri_memory-"))
        self._owner = os.getpid()
        self._served: set[int] = set()
        self._turn = threading.Lock()
        self._farewell: list[str] | None = None
        self._watchman = subprocess.Popen(
            [sys.executable, "-I", "-S", watch.__file__, str(self._owner), str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.path.abspath(os.sep),
            text=True,
            encoding="utf-8",
            # A notebook's interrupt and restart go to the kernel's whole process group: the watchman is not in it.
            **_own_group(),
        )

    def run(self, argv: Sequence[str], limit: Limit, user: str | None = None) -> None:
        """Run a command to its end. RuntimeError with its last words if it fails, TimeoutError after the limit."""
        name = Path(argv[0]).name
        answer = self._ask({"run": list(argv), "log": str(self.log), "user": user}, limit, name)
        if answer["code"] != 0:
            raise RuntimeError(f"{name} ended with {answer['code']}: {self.last_words()}")

    def serve(self, argv: Sequence[str], limit: Limit, end_signal: int, user: str | None = None) -> int:
        """Start a server, which `end_signal` will end; its process id."""
        request = {"serve": list(argv), "log": str(self.log), "user": user, "signal": int(end_signal)}
        pid = int(self._ask(request, limit)["pid"])
        self._served.add(pid)
        return pid

    def at_the_end(self, farewell: Sequence[str]) -> None:
        """A command to run as well, before the folder goes."""
        self._farewell = list(farewell)
        self._ask({"farewell": self._farewell}, Limit(5))

    def is_alive(self, pid: int) -> bool:
        return self._watchman.poll() is None and bool(self._ask({"alive": pid}, Limit(5))["alive"])

    def kill(self, pid: int) -> None:
        """kill -9, and wait until it is dead."""
        self._ask({"kill": pid}, Limit(5))

    @property
    def log(self) -> Path:
        """Where the servers write what they have to say."""
        return self.folder / "log"

    def last_words(self, most: int = 400) -> str:
        """The end of the log, on one line."""
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return "it wrote no log"
        return " / ".join(text.split("\n"))[-most:].strip() or "it said nothing"

    def let_go(self) -> None:
        """Let the watchman end what it runs and remove the folder; returns when that is done."""
        if os.getpid() != self._owner:
            return  # a forked child has no say in it
        watchman = self._watchman
        with contextlib.suppress(OSError, ValueError):
            if watchman.stdin:
                watchman.stdin.write('{"bye": true}\n')  # a forked child may hold the pipe open
                watchman.stdin.close()
        try:
            watchman.wait(timeout=watch.POLITE_S + watch.FAREWELL_S + 5)
        except subprocess.TimeoutExpired:
            watchman.kill()
            watchman.wait()
        if watchman.stdout:
            watchman.stdout.close()
        if watchman.returncode != 0:  # somebody killed it: do what can be done from here
            self._without_watchman()

    def _without_watchman(self) -> None:
        for pid in self._served:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
        if self._farewell:
            watch.say_farewell(self._farewell)
        watch.remove(str(self.folder))

    def _ask(self, request: dict[str, Any], limit: Limit, what: str = "the server's watchman") -> dict[str, Any]:
        def answer() -> str:
            assert self._watchman.stdin is not None
            assert self._watchman.stdout is not None
            self._watchman.stdin.write(json.dumps(request) + "\n")
            self._watchman.stdin.flush()
            return str(self._watchman.stdout.readline())

        try:
            with self._turn:
                line = within(limit, what, answer)
        except TimeoutError:
            raise
        except OSError:
            line = ""  # the pipe is broken
        if not line:
            raise RuntimeError("the process that watches over the server was ended from outside: start the engine anew")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise RuntimeError(f"the server could not be started: {found['error']}")
        return found


def _own_group() -> dict[str, Any]:
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    return {"start_new_session": True}
