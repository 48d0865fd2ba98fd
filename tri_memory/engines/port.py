"""A free port on the loopback interface."""

from __future__ import annotations

import socket
from collections.abc import Callable

from tri_memory.engines.ready import ServerEnded

TRIES = 3


def free_port() -> int:
    """A port of 127.0.0.1 that nobody had a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def on_a_free_port(serve_at: Callable[[int], None]) -> None:
    """Start a server; once more on another port where it ended, as it does when somebody took the port meanwhile."""
    for attempt in range(1, TRIES + 1):
        try:
            serve_at(free_port())
        except ServerEnded:
            if attempt == TRIES:
                raise
        else:
            return
