"""The watchman: a small process that runs a server for its owner and cleans up when the owner is gone.

It is a script of its own, started by `guard.py` as `python -I -S watch.py OWNER_PID FOLDER`, and needs the standard
library only. The owner holds the other end of its standard input. However the owner ends (exit, exception, SIGTERM,
kill -9, a restarted notebook kernel), that pipe closes, and the watchman carries out the will: end the servers, run the
farewell command if there is one, remove the folder. It is the parent of what it runs, so no process id can be somebody
else's by then.

Each line on standard input is a request, each line on standard output the answer to it:

    {"run": argv, "log": path, "user": name or null}           -> {"code": n}    once it has ended
    {"serve": argv, "log": path, "user": …, "signal": number}  -> {"pid": n}     at once; it runs on
    {"alive": pid}                                             -> {"alive": true or false}
    {"kill": pid}                                              -> {"alive": false}, after a kill -9
    {"farewell": argv}                                         -> {}
    {"bye": true}                                              no answer: the will is carried out
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import Any

POLITE_S = 5.0  # how long a server may take to end before it is killed
FAREWELL_S = 30.0
GLANCE_S = 0.3  # how often the watchman looks whether the owner is still its parent


class Watchman:
    """Carries out requests until the owner is gone, then the will."""

    def __init__(self, owner: int, folder: str) -> None:
        self.owner, self.folder = owner, folder
        self.farewell: list[str] = []
        self.inbox: queue.Queue[str | None] = queue.Queue()
        self.servers: dict[int, tuple[subprocess.Popen[bytes], int]] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self.inbox.put(line)
        self.inbox.put(None)

    def keep(self) -> None:
        """Answer requests until the pipe closes, or until a forked child of the dead owner alone holds it open."""
        while not self._orphaned():
            try:
                line = self.inbox.get(timeout=GLANCE_S)
            except queue.Empty:
                continue
            request = json.loads(line) if line else {"bye": True}
            answer = None if "bye" in request else self._answer(request)
            if answer is None:
                return
            print(json.dumps(answer), flush=True)

    def _orphaned(self) -> bool:
        return os.name == "posix" and os.getppid() != self.owner

    def _answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        try:
            if "run" in request:
                return self._run(self._start(request["run"], request))
            if "serve" in request:
                server = self._start(request["serve"], request)
                self.servers[server.pid] = (server, request["signal"])
                return {"pid": server.pid}
        except OSError as error:
            return {"error": str(error)}
        if "farewell" in request:
            self.farewell = request["farewell"]
            return {}
        server = self.servers[request.get("alive") or request["kill"]][0]
        if "kill" in request:
            server.kill()
            server.wait()
        return {"alive": server.poll() is None}

    def _start(self, argv: list[str], request: dict[str, Any]) -> subprocess.Popen[bytes]:
        with open(request["log"], "ab") as log:
            # The log goes to a file: nobody would read a pipe, and a full one stops the server.
            user = {"user": request["user"], "group": request["user"], "extra_groups": []} if request["user"] else {}
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, **user)

    def _run(self, child: subprocess.Popen[bytes]) -> dict[str, Any] | None:
        """Wait for a short command; None when the owner went away meanwhile."""
        while True:
            try:
                return {"code": child.wait(timeout=0.02)}
            except subprocess.TimeoutExpired:
                if self._orphaned() or not self.inbox.empty():  # the owner asks nothing while it waits: it has gone
                    child.kill()
                    child.wait()
                    return None

    def execute(self) -> None:
        """The will. Nothing in it may keep the rest of it from being done."""
        for server, end_signal in self.servers.values():
            if server.poll() is None:
                server.send_signal(end_signal)
        ends = time.monotonic() + POLITE_S
        for server, _ in self.servers.values():
            try:
                server.wait(timeout=max(0.0, ends - time.monotonic()))
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        if self.farewell:
            say_farewell(self.farewell)
        remove(self.folder)


def say_farewell(argv: list[str]) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # nobody is left to tell
        nowhere = subprocess.DEVNULL
        subprocess.run(argv, stdin=nowhere, stdout=nowhere, stderr=nowhere, timeout=FAREWELL_S, check=False)


def remove(folder: str) -> None:
    """Take the folder away; again while a server's last child still writes into it."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(0.1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # a machine that shuts down: the will first
    watchman = Watchman(int(sys.argv[1]), sys.argv[2])
    try:
        watchman.keep()
    finally:
        watchman.execute()
        os._exit(0)  # at once: the thread that reads standard input would keep the interpreter from ending cleanly
