"""A real HTTP server on a free port of this machine, for a notebook cell or a test."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp


@contextmanager
def serve(app: ASGIApp, *, ready_s: float = 10, stop_s: float = 5) -> Iterator[str]:
    """The URL of `app`, served by uvicorn in a thread with an event loop of its own while the block runs.

    Only this machine can reach it. Requests still open at the end get `stop_s` seconds. A store that the application
    uses has to work on that loop: in memory, or made by `from_url`.
    Raises RuntimeError for an application that fails to start, or takes longer than `ready_s` seconds.
    """
    config = uvicorn.Config(
        app, log_config=None, log_level="warning", access_log=False, timeout_graceful_shutdown=max(1, int(stop_s))
    )
    server = uvicorn.Server(config)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            server.run(sockets=[listening])
        except BaseException as failure:  # SystemExit too: it would end the thread without a word
            failures.append(failure)

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=run, name="tri_memory.web", daemon=True)
        thread.start()
        try:
            _wait_until_started(server, thread, failures, ready_s)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(stop_s + 2)
            if thread.is_alive():
                server.force_exit = True
                thread.join(2)


def _wait_until_started(
    server: uvicorn.Server, thread: threading.Thread, failures: list[BaseException], ready_s: float
) -> None:
    end = time.monotonic() + ready_s
    while not server.started:
        if not thread.is_alive():
            cause = failures[0] if failures else None
            raise RuntimeError(f"the application did not start: {cause or 'see the log of uvicorn.error'}") from cause
        if time.monotonic() > end:
            raise RuntimeError(f"the application was not ready within {ready_s:g} s")
        time.sleep(0.01)
