from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI, Request
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tests.web.test_token import signed
from tri_memory import InMemoryEpisodicStore, InMemoryPreferenceStore
from tri_memory.embedding import HashingEmbedder
from tri_memory.web.app import memory_app
from tri_memory.web.middleware import MemoryTokenMiddleware, current_user
from tri_memory.web.server import serve
from tri_memory.web.token import MemoryTokens

TOKENS = MemoryTokens("s3cret-" * 10)


def application() -> Starlette:
    stores: Any = {"preferences": InMemoryPreferenceStore(), "episodes": InMemoryEpisodicStore()}
    return memory_app(TOKENS, embedder=HashingEmbedder(), **stores)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(application()) as url:
        yield url


def own_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "tri_memory.web"]


def raw(url: str, *header_lines: bytes) -> bytes:
    """The status line that a server gives to these very bytes; b"" where it hangs up."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), timeout=10) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(
                b"\r\n".join([b"GET /recall HTTP/1.1", b"Host: test", *header_lines, b"Connection: close", b"", b""])
            )
        with contextlib.suppress(ConnectionError):
            return connection.makefile("rb").readline().strip()
    return b""


def test_the_application_works_over_real_http(url: str) -> None:
    with httpx.Client(base_url=url, headers={"X-Memory-Token": TOKENS.issue("安")}) as client:
        assert client.post("/remember", json={"key": "size", "value": "42"}).json() == {"kept": True}
        assert client.get("/recall").json()["preferences"] == {"size": "42"}
        assert client.get("/users/bob/recall").status_code == 403
        assert client.post("/forget").json() == {"preferences": 1, "episodes": 0}
    assert httpx.get(f"{url}/recall").status_code == 401
    assert httpx.get(f"{url}/health").json() == {"ok": True}


@pytest.mark.parametrize(
    ("lines", "statuses"),
    [
        ([], {b"401"}),
        ([b"X-Memory-Token:"], {b"401"}),
        ([b"X-Memory-Token: " + b"a" * 20_000], {b"401"}),
        ([b"X-Memory-Token: " + b"a" * 1_000_000], {b"400", b"431", b""}),  # the server's own limit
        ([b"X-Memory-Token: \xff\xfe.b.c"], {b"401", b"400"}),
        ([b"X-Memory-Token: " + "安.b.c".encode()], {b"401", b"400"}),
        ([b"X-Memory-Token: a.b.c\0"], {b"401", b"400"}),
        ([b"X-Memory-Token: a.b.c", b" folded: x"], {b"401", b"400"}),
        ([b"X-Memory-Token: a.b.c", b"X-MEMORY-TOKEN: a.b.c"], {b"401"}),
        ([b"X-Memory-Token: " + signed({"sub": "bob", "iat": 0, "exp": 9e9}, "0ther-" * 6).encode()], {b"401"}),
        ([b"X-Memory-Token: " + TOKENS.issue("ann").encode()], {b"200"}),
        ([b"x-memory-token:\t " + TOKENS.issue("ann").encode() + b" \t"], {b"200"}),
    ],
)
def test_hostile_header_lines_are_answered_and_the_server_lives_on(
    url: str, lines: list[bytes], statuses: set[bytes]
) -> None:
    assert raw(url, *lines)[9:12] in statuses
    assert httpx.get(f"{url}/health").status_code == 200


def test_a_fastapi_application_is_served_too_and_renews_over_real_http() -> None:
    app, tokens = FastAPI(), MemoryTokens("s3cret-" * 10, lifetime_s=60)
    app.add_middleware(MemoryTokenMiddleware, tokens=tokens)

    @app.get("/me")
    async def me(request: Request) -> dict[str, str]:
        return {"user": current_user(request)}

    now = time.time()
    ageing = signed({"sub": "ann", "iat": now - 50, "exp": now + 50 - 1})
    with serve(app) as url:
        answer = httpx.get(f"{url}/me", headers={"X-Memory-Token": ageing})
        assert answer.json() == {"user": "ann"}
        again = httpx.get(f"{url}/me", headers={"X-Memory-Token": answer.headers["x-memory-token"]})
    assert again.json() == {"user": "ann"}
    assert "x-memory-token" not in again.headers


def test_a_websocket_that_is_refused_gets_the_reason_over_real_http(url: str) -> None:
    answer = raw(
        url,
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Version: 13",
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    )
    assert answer[9:12] == b"401"


async def test_it_is_started_and_asked_inside_a_running_loop_as_in_a_notebook() -> None:
    with serve(application()) as url:
        async with httpx.AsyncClient(base_url=url, headers={"X-Memory-Token": TOKENS.issue("ann")}) as client:
            kept = [client.post("/remember", json={"key": f"k{i}", "value": "v"}) for i in range(20)]
            assert {answer.status_code for answer in await asyncio.gather(*kept)} == {200}
            assert len((await client.get("/recall")).json()["preferences"]) == 20


def test_two_servers_at_once_have_ports_of_their_own_and_only_this_machine_reaches_them() -> None:
    with serve(application()) as one, serve(application()) as two:
        assert one != two
        assert {urlsplit(each).hostname for each in (one, two)} == {"127.0.0.1"}
        assert [httpx.get(f"{each}/health").status_code for each in (one, two)] == [200, 200]


def test_after_the_block_nothing_is_left_of_the_server_even_where_it_raised() -> None:
    before = len(own_threads())
    with pytest.raises(httpx.InvalidURL), serve(application()) as url:
        httpx.get(f"{url}\0")
    assert len(own_threads()) == before
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


def test_startup_and_shutdown_of_the_application_are_run_once() -> None:
    seen: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        seen.append("up")
        yield
        seen.append("down")

    with serve(Starlette(lifespan=lifespan)):
        assert seen == ["up"]
    assert seen == ["up", "down"]


def test_an_application_that_does_not_start_is_an_error_and_leaves_no_thread() -> None:
    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        raise LookupError("no database")
        yield

    before = len(own_threads())
    with pytest.raises(RuntimeError, match="did not start"), serve(Starlette(lifespan=lifespan)):
        pass
    assert len(own_threads()) == before


def test_an_application_that_is_never_ready_is_an_error_after_the_limit() -> None:
    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await asyncio.sleep(1.5)
        yield

    before = len(own_threads())
    with (
        pytest.raises(RuntimeError, match=r"not ready within 0\.2 s"),
        serve(Starlette(lifespan=lifespan), ready_s=0.2),
    ):
        pass
    assert len(own_threads()) == before


@pytest.mark.parametrize("kind", ["a stream", "an answer"])
def test_what_never_ends_does_not_keep_the_server_alive_or_the_application_from_closing(kind: str) -> None:
    seen: list[str] = []

    async def ticks() -> AsyncIterator[bytes]:
        while True:
            yield b"tick"
            await asyncio.sleep(0.01)

    async def endless(request: Any) -> StreamingResponse:
        seen.append("asked")
        if kind == "an answer":
            await asyncio.sleep(3_600)
        return StreamingResponse(ticks())

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        seen.append("down")

    before = len(own_threads())
    with serve(Starlette(routes=[Route("/", endless)], lifespan=lifespan), stop_s=1) as url:
        where = urlsplit(url)
        connection = socket.create_connection((where.hostname, where.port), timeout=10)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
        end = time.monotonic() + 10
        while not seen and time.monotonic() < end:
            time.sleep(0.01)
    connection.close()
    assert len(own_threads()) == before
    assert seen == ["asked", "down"]
