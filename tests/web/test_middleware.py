from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
import jwt
import pytest
from fastapi import FastAPI, Request
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from tests.web.test_token import FORGED, MALFORMED, signed
from tri_memory import ManualClock
from tri_memory.web.middleware import MemoryTokenMiddleware, current_user, require_same_user
from tri_memory.web.token import LONGEST_TOKEN, MemoryTokens

SECRET = "s3cret-" * 10
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def tokens(clock: ManualClock) -> MemoryTokens:
    return MemoryTokens(SECRET, clock=clock)


async def who(request: Any) -> JSONResponse:
    return JSONResponse({"user": current_user(request), "from": request.state.user_id})


async def own_page(request: Any) -> JSONResponse:
    return JSONResponse({"user": require_same_user(request, request.path_params["user_id"])})


async def health(request: Any) -> JSONResponse:
    return JSONResponse({"state": sorted(request.scope.get("state", {}))})


async def broken(request: Any) -> JSONResponse:
    raise LookupError("inside the application")


def application(tokens: MemoryTokens, **options: Any) -> Starlette:
    routes = [
        Route("/", who),
        Route("/users/{user_id:path}", own_page),
        Route("/health", health),
        Route("/broken", broken),
        Route("/anywhere/{rest:path}", who),
    ]
    return Starlette(routes=routes, middleware=[Middleware(MemoryTokenMiddleware, tokens=tokens, **options)])


async def ask(app: Any, path: str = "/", headers: Any = (), **options: Any) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        return await client.get(path, headers=headers, **options)


def with_token(token: str) -> dict[str, str]:
    return {"X-Memory-Token": token}


async def refused(app: Any, headers: Any, error: str) -> str:
    """The reason of a 401 of that kind."""
    answer = await ask(app, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (401, error)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["www-authenticate"] == "X-Memory-Token"
    assert "x-memory-token" not in answer.headers
    assert set(answer.json()) == {"error", "reason"}
    return str(answer.json()["reason"])


@pytest.mark.parametrize("user_id", ["ann", "安", "a/b", "ann\r\nx-admin: 1"])
async def test_the_application_learns_the_user_from_the_token(tokens: MemoryTokens, user_id: str) -> None:
    answer = await ask(application(tokens), headers=with_token(tokens.issue(user_id)))
    assert answer.json() == {"user": user_id, "from": user_id}


async def test_fastapi_takes_the_middleware_too(tokens: MemoryTokens) -> None:
    app = FastAPI()
    app.add_middleware(MemoryTokenMiddleware, tokens=tokens)

    @app.get("/users/{user_id}")
    async def page(user_id: str, request: Request) -> dict[str, str]:
        return {"user": require_same_user(request, user_id)}

    headers = with_token(tokens.issue("ann"))
    assert (await ask(app, "/users/ann", headers)).json() == {"user": "ann"}
    assert (await ask(app, "/users/bob", headers)).status_code == 403
    assert (await ask(app, "/users/ann")).status_code == 401


@pytest.mark.parametrize(
    ("headers", "error", "reason"),
    [
        ([], "missing", "is missing"),
        ([("Authorization", "Bearer x"), ("X-Memory-Tokens", "x")], "missing", "is missing"),
        ([("X-Memory-Token", "")], "missing", "is blank"),
        ([("X-Memory-Token", " \t ")], "missing", "is blank"),
        ([("X-Memory-Token", "a.b.c"), ("x-memory-token", "a.b.c")], "malformed", "2 times"),
        ([("X-Memory-Token", "a" * (LONGEST_TOKEN + 1))], "malformed", "longer than 8,192 bytes"),
        ([("X-Memory-Token", "a" * 1_000_000)], "malformed", "longer than 8,192 bytes"),
        ([(b"X-Memory-Token", "安.b.c".encode())], "malformed", "letters, digits"),
        ([(b"X-Memory-Token", b"\xff\xfe.\x00.\x80")], "malformed", "letters, digits"),
        ([(b"X-Memory-Token", b"a.b.c\r\nX-User: bob")], "malformed", "letters, digits"),
        ([(b"X-Memory-Token", b"a.b.c\n")], "malformed", "letters, digits"),
    ],
)
async def test_a_header_that_is_none_is_a_401_with_the_reason(
    tokens: MemoryTokens, headers: Any, error: str, reason: str
) -> None:
    assert reason in await refused(application(tokens), headers, error)


@pytest.mark.parametrize("make", FORGED.values(), ids=FORGED)
async def test_a_forged_token_is_a_401(tokens: MemoryTokens, make: Any) -> None:
    await refused(application(tokens), with_token(make()), "forged")


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
async def test_a_token_that_lacks_a_user_or_a_time_is_a_401(tokens: MemoryTokens, content: Any) -> None:
    await refused(application(tokens), with_token(signed(content)), "malformed")


async def test_a_token_past_or_before_its_time_is_a_401(tokens: MemoryTokens, clock: ManualClock) -> None:
    headers = with_token(tokens.issue("ann"))
    clock.advance(hours=1)
    assert "expired" in await refused(application(tokens), headers, "expired")
    clock.advance(hours=-2)
    assert "not valid yet" in await refused(application(tokens), headers, "not_yet_valid")


async def test_the_good_token_beside_a_second_one_is_refused_in_either_order(tokens: MemoryTokens) -> None:
    pair = [("X-Memory-Token", tokens.issue("ann")), ("x-memory-token", tokens.issue("bob"))]
    await refused(application(tokens), pair, "malformed")
    await refused(application(tokens), pair[::-1], "malformed")
    await refused(application(tokens), [("X-Memory-Token", f"{pair[0][1]}, {pair[1][1]}")], "malformed")


@pytest.mark.parametrize(
    "path", ["/users/bob", "/users/Ann", "/users/ann%20", "/users/", "/users/ann/../bob", "/users/ann%00"]
)
async def test_a_token_replayed_on_the_path_of_another_user_is_a_403(tokens: MemoryTokens, path: str) -> None:
    answer = await ask(application(tokens), path, with_token(tokens.issue("ann")))
    assert answer.status_code == 403
    assert "bob" not in answer.text
    assert (await ask(application(tokens), "/users/ann", with_token(tokens.issue("ann")))).json() == {"user": "ann"}


@pytest.mark.parametrize("user_id", ["bob", "", None, ["ann"], 0, True])
def test_what_is_not_this_very_user_id_is_another_user(user_id: Any) -> None:
    from starlette.exceptions import HTTPException

    with pytest.raises(HTTPException) as refusal:
        require_same_user({"state": {"user_id": "ann"}}, user_id)
    assert refusal.value.status_code == 403


@pytest.mark.parametrize("scope", [{}, {"state": None}, {"state": {}}, {"state": {"user_id": ""}}])
def test_without_the_middleware_there_is_no_user(scope: Any) -> None:
    from starlette.exceptions import HTTPException

    for ask_for in (lambda: current_user(scope), lambda: require_same_user(scope, None)):
        with pytest.raises(HTTPException) as refusal:
            ask_for()
        assert refusal.value.status_code == 401


@pytest.mark.parametrize("path", ["/health", "/health?x=1"])
async def test_an_exempt_path_needs_no_token_and_gets_no_user(tokens: MemoryTokens, path: str) -> None:
    for headers in ({}, with_token(tokens.issue("ann")), with_token("rubbish")):
        answer = await ask(application(tokens), path, headers)
        assert (answer.status_code, answer.json()) == (200, {"state": []})


@pytest.mark.parametrize(
    "path", ["/healthy", "/health/", "/health/../", "/HEALTH", "//health", "/anywhere/health", "/health%2F..%2F"]
)
async def test_a_path_that_only_looks_exempt_needs_a_token(tokens: MemoryTokens, path: str) -> None:
    assert (await ask(application(tokens), path)).status_code == 401


def test_one_string_of_exempt_paths_is_refused(tokens: MemoryTokens) -> None:
    with pytest.raises(ValueError, match="list of paths"):
        MemoryTokenMiddleware(application(tokens), tokens, exempt="/health")


async def test_a_token_in_its_second_half_is_renewed_for_the_same_user(
    tokens: MemoryTokens, clock: ManualClock
) -> None:
    app, headers = application(tokens), with_token(tokens.issue("ann"))
    clock.advance(minutes=30)
    assert "x-memory-token" not in (await ask(app, headers=headers)).headers
    clock.advance(minutes=29)
    answer = await ask(app, headers=headers)
    assert answer.headers["cache-control"] == "no-store"
    clock.advance(minutes=59)  # the first one is over for long
    again = await ask(app, headers=with_token(answer.headers["x-memory-token"]))
    assert again.json()["user"] == "ann"
    missing = await ask(app, "/no-such-page", with_token(again.headers["x-memory-token"]))
    assert missing.status_code == 404


async def test_after_a_new_secret_the_renewed_token_is_signed_with_it(clock: ManualClock) -> None:
    old, new = MemoryTokens(SECRET, clock=clock), "n3w-" * 10
    token = old.issue("ann")
    clock.advance(minutes=45)
    answer = await ask(application(MemoryTokens(new, clock=clock, previous=[SECRET])), headers=with_token(token))
    assert (
        jwt.decode(
            answer.headers["x-memory-token"], new, ["HS256"], options={"verify_exp": False, "verify_iat": False}
        )["sub"]
        == "ann"
    )


async def test_a_token_that_the_application_sends_is_not_replaced(tokens: MemoryTokens, clock: ManualClock) -> None:
    async def switch(request: Any) -> JSONResponse:
        return JSONResponse({}, headers={"X-Memory-Token": "its own", "Cache-Control": "private"})

    app = MemoryTokenMiddleware(Starlette(routes=[Route("/", switch)]), tokens)
    headers = with_token(tokens.issue("ann"))
    clock.advance(minutes=59)
    answer = await ask(app, headers=headers)
    assert answer.headers.get_list("x-memory-token") == ["its own"]
    assert answer.headers["cache-control"] == "private"


async def test_many_requests_at_once_keep_their_users_apart(tokens: MemoryTokens, clock: ManualClock) -> None:
    shared: dict[str, Any] = {"pool": "shared"}  # a server that gives every request the same dictionary

    async def slow(request: Any) -> JSONResponse:
        before = current_user(request)
        await asyncio.sleep(0.001 * (len(before) % 3))
        return JSONResponse([before, current_user(request), request.state.pool])

    inner = MemoryTokenMiddleware(Starlette(routes=[Route("/", slow)]), tokens)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await inner({**scope, "state": shared}, receive, send)

    users = [f"u{'x' * i}" for i in range(60)]
    made = {user: tokens.issue(user) for user in users}
    clock.advance(minutes=40)
    answers = await asyncio.gather(*(ask(app, headers=with_token(made[user])) for user in users))
    for user, answer in zip(users, answers, strict=True):
        assert answer.json() == [user, user, "shared"]
        assert tokens.read(answer.headers["x-memory-token"]).user_id == user
    assert shared == {"pool": "shared"}


async def test_a_stream_passes_piece_by_piece(tokens: MemoryTokens, clock: ManualClock) -> None:
    sent: list[Any] = []

    async def pieces() -> AsyncIterator[bytes]:
        for i in range(3):
            yield f"{i}".encode()
            assert sent[-1]["body"] == f"{i}".encode(), "a piece was held back"

    async def stream(request: Any) -> StreamingResponse:
        return StreamingResponse(pieces(), headers={"cache-control": "no-cache"})

    async def receive() -> Any:
        await asyncio.sleep(3_600)

    async def send(message: Any) -> None:
        sent.append(message)

    token = tokens.issue("ann")
    app = MemoryTokenMiddleware(Starlette(routes=[Route("/", stream)]), tokens)
    for renewed in (False, True):
        sent.clear()
        await app(scope_of([(b"x-memory-token", token.encode())]), receive, send)
        assert [each.get("body") for each in sent] == [None, b"0", b"1", b"2", b""]
        names = [name for name, _ in sent[0]["headers"]]
        assert (b"x-memory-token" in names) is renewed
        caching = [value for name, value in sent[0]["headers"] if name == b"cache-control"]
        assert caching == [b"no-store" if renewed else b"no-cache"]
        clock.advance(minutes=45)


async def test_an_error_in_the_application_comes_out_as_it_was(tokens: MemoryTokens, clock: ManualClock) -> None:
    headers = with_token(tokens.issue("ann"))
    for _ in range(2):
        with pytest.raises(LookupError, match="inside the application"):
            await ask(application(tokens), "/broken", headers)
        clock.advance(minutes=45)


def scope_of(headers: list[tuple[bytes, bytes]], kind: str = "http", **more: Any) -> dict[str, Any]:
    scope = {"type": kind, "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "path": "/"}
    scope |= {"raw_path": b"/", "query_string": b"", "root_path": "", "server": ("test", 80), "client": ("c", 1)}
    return {**scope, **({"method": "GET"} if kind == "http" else {"subprotocols": []}), "headers": headers, **more}


async def talk(app: Any, scope: dict[str, Any], incoming: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What an application sends, given what it receives."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return incoming.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


async def greet(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text(current_user(socket))
    await socket.close()


async def test_a_websocket_brings_its_token_with_the_handshake(tokens: MemoryTokens, clock: ManualClock) -> None:
    app = MemoryTokenMiddleware(Starlette(routes=[WebSocketRoute("/", greet)]), tokens)
    headers = [(b"x-memory-token", tokens.issue("ann").encode())]
    sent = await talk(app, scope_of(headers, "websocket"), [{"type": "websocket.connect"}])
    assert [each["type"] for each in sent] == ["websocket.accept", "websocket.send", "websocket.close"]
    assert sent[1]["text"] == "ann"
    assert not sent[0].get("headers")
    clock.advance(minutes=45)
    renewed = await talk(app, scope_of(headers, "websocket"), [{"type": "websocket.connect"}])
    assert tokens.read(dict(renewed[0]["headers"])[b"x-memory-token"].decode()).user_id == "ann"


async def test_a_websocket_without_a_good_token_never_reaches_the_application(tokens: MemoryTokens) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("the application was called")

    guarded = MemoryTokenMiddleware(app, tokens)
    for headers in ([], [(b"x-memory-token", signed({"sub": "bob"}, "0ther-" * 6).encode())]):
        (closed,) = await talk(guarded, scope_of(headers, "websocket"), [{"type": "websocket.connect"}])
        assert (closed["type"], closed["code"]) == ("websocket.close", 1008)
        assert closed["reason"]
        can = {"extensions": {"websocket.http.response": {}}}
        start, body = await talk(guarded, scope_of(headers, "websocket", **can), [{"type": "websocket.connect"}])
        assert (start["type"], start["status"]) == ("websocket.http.response.start", 401)
        assert json.loads(body["body"])["error"] in ("missing", "forged")


async def test_lifespan_passes_without_a_token(tokens: MemoryTokens) -> None:
    app = application(tokens)
    incoming = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent = await talk(app, {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, incoming)
    assert [each["type"] for each in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


HEADER_NAMES = st.sampled_from([b"x-memory-token", b"X-Memory-Token", b"x-user-id", b"authorization", b"cookie"])
PARTS = st.sampled_from(
    [b"eyJhbGciOiJub25lIn0", b"eyJhbGciOiJIUzI1NiJ9", b"eyJzdWIiOiJib2IifQ", b"", b"=", b"\r\n", b"\0"]
)
VALUES = st.binary(max_size=200) | st.lists(PARTS, min_size=2, max_size=4).map(b".".join)


@given(st.lists(st.tuples(HEADER_NAMES, VALUES), max_size=5), st.booleans(), st.integers(0, 5))
def test_whatever_bytes_stand_in_the_headers_it_is_a_401_or_the_tokens_own_user(
    headers: list[tuple[bytes, bytes]], with_a_good_one: bool, place: int
) -> None:
    tokens = MemoryTokens(SECRET, clock=ManualClock(START))
    if with_a_good_one:
        headers.insert(place, (b"x-memory-token", tokens.issue("ann").encode()))
    sent = asyncio.run(talk(application(tokens), scope_of(headers), [{"type": "http.request", "body": b""}]))
    answer = json.loads(sent[1]["body"])
    how_many = sum(name.lower() == b"x-memory-token" for name, _ in headers)
    if with_a_good_one and how_many == 1:
        assert (sent[0]["status"], answer["user"]) == (200, "ann")
    else:
        assert sent[0]["status"] == 401
