"""What the memory token costs a request, beside the same application without it. The limit is 1 ms a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from benchmarks.timing import Row, paired
from tri_memory import ManualClock
from tri_memory.web.middleware import MemoryTokenMiddleware
from tri_memory.web.token import MemoryTokens

REQUESTS = 300
LIMIT_US = 1_000


def rows() -> Iterator[Row]:
    fresh = MemoryTokens("benchmark" * 8)
    yield _beside_the_bare_application("request with a memory token", fresh, fresh.issue("ann"))
    clock = ManualClock()
    ageing = MemoryTokens("benchmark" * 8, clock=clock)
    token = ageing.issue("ann")
    clock.advance(minutes=45)
    yield _beside_the_bare_application("the same, token renewed", ageing, token)


def _beside_the_bare_application(work: str, tokens: MemoryTokens, token: str) -> Row:
    """The goal is given as a ratio, for the time that the bare application takes here, and 1 ms more."""

    async def hello(request: Any) -> PlainTextResponse:
        return PlainTextResponse("hello")

    app = Starlette(routes=[Route("/", hello)])
    guarded = MemoryTokenMiddleware(app, tokens)
    row = paired(work, _requests(guarded, token), "the bare application", _requests(app, token), units=REQUESTS, goal=0)
    goal = (row.beside_us + LIMIT_US) / row.beside_us
    return Row(row.work, row.ours_us, row.beside, row.beside_us, row.ratio, goal)


def _requests(app: Any, token: str) -> Callable[[], None]:
    """`REQUESTS` requests through ASGI, without a socket."""
    headers = [(b"host", b"test"), (b"x-memory-token", token.encode())]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] != 200:
            raise RuntimeError(f"the application answered {message['status']}")

    async def go() -> None:
        for _ in range(REQUESTS):
            scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": list(headers)}
            await app(scope, receive, send)

    return lambda: asyncio.run(go())
