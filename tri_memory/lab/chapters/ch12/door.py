"""Requests that try to get at somebody's records: honest ones, and tokens that were made up, bent, or taken along."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import statistics
import time
from collections.abc import Callable
from typing import Any

import httpx
import jwt
import pandas as pd
from fastapi import FastAPI

from tri_memory import ManualClock
from tri_memory.clock import system_clock
from tri_memory.lab.claims import Outcome
from tri_memory.web.middleware import HEADER, MemoryTokenMiddleware
from tri_memory.web.token import MemoryTokens

PATIENCE_S = 10
ROUNDS, REQUESTS = 15, 100
CLAIMED_MS = 12.0


def _part(fields: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).rstrip(b"=").decode()


def tokens_to_try(secret: str, mine: str) -> dict[str, str | None]:
    """By name, a token to ask for ann's number with; None for no token at all. `mine` is what ann was given."""
    now = time.time()
    good = {"sub": "ann", "iat": now, "exp": now + 3_600}
    past = ManualClock(system_clock())
    past.advance(hours=-1, minutes=-1)
    head, _, signature = mine.split(".")
    return {
        "ann's own": mine,
        "none at all": None,
        "unsigned, alg none": f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part(good)}.",
        "signed with another key": jwt.encode(good, secrets.token_urlsafe(32), "HS256"),
        "ben's, with ann written in": f"{head}.{_part(good)}.{signature}",
        "ann's of an hour ago, again": MemoryTokens(secret, clock=past).issue("ann"),
        "ben's own": MemoryTokens(secret).issue("ben"),
    }


def attempts(url: str, secret: str, mine: str) -> pd.DataFrame:
    """What each of them gets for ann's number."""
    rows = []
    with httpx.Client(base_url=url, timeout=PATIENCE_S, trust_env=False) as client:
        for name, token in tokens_to_try(secret, mine).items():
            reply = client.get("/users/ann/phone", headers={} if token is None else {HEADER: token})
            said = reply.json()
            rows.append((name, reply.status_code, said.get("reason") or said.get("detail") or said))
    return pd.DataFrame(rows, columns=["token", "status", "answer"]).set_index("token")


def written_in(token: str) -> str:
    """The claims in it as JSON, without any check."""
    body = token.split(".")[1]
    return base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode()


async def cost() -> pd.DataFrame:
    """Microseconds that a request takes more with the middleware, a row a round: the bare application, with a token,
    with one that is renewed, and for the HMAC alone. Through ASGI, without a socket; each round has all of them, 100
    times each."""
    app = FastAPI()

    @app.get("/hello")
    async def hello() -> str:
        return "hello"

    clock = ManualClock(system_clock())
    fresh, ageing = MemoryTokens("lesson" * 8), MemoryTokens("lesson" * 8, clock=clock)
    old = ageing.issue("ann")
    clock.advance(minutes=45)
    apps: dict[str, tuple[Callable[..., Any], str]] = {
        "bare": (app, ""),
        "with a token": (MemoryTokenMiddleware(app, fresh), fresh.issue("ann")),
        "with a renewed one": (MemoryTokenMiddleware(app, ageing), old),
    }
    rows = []
    for _ in range(ROUNDS + 1):
        took = {name: await _us(asgi, token) for name, (asgi, token) in apps.items()}
        rows.append({name: us - took["bare"] for name, us in took.items() if name != "bare"})
        rows[-1] |= {"bare": took["bare"], "hmac": _hmac_us(apps["with a token"][1])}
    return pd.DataFrame(rows[1:])


def _hmac_us(token: str) -> float:
    """Microseconds of the one hash in it: over what was signed, which is all but the signature."""
    signed, taken = token.rpartition(".")[0].encode(), []
    for _ in range(REQUESTS):
        started = time.perf_counter()
        hmac.digest(b"lesson" * 8, signed, "sha256")
        taken.append(1e6 * (time.perf_counter() - started))
    return statistics.median(taken)


async def _us(app: Callable[..., Any], token: str) -> float:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] != 200:
            raise RuntimeError(f"the application answered {message['status']}")

    scope = {"type": "http", "method": "GET", "path": "/hello", "query_string": b"", "headers": []}
    headers = [(b"host", b"lesson"), (HEADER.lower().encode(), token.encode())]
    taken = []
    for _ in range(REQUESTS):
        started = time.perf_counter()
        await app({**scope, "headers": list(headers)}, receive, send)
        taken.append(1e6 * (time.perf_counter() - started))
    return statistics.median(taken)


def sentence(table: pd.DataFrame) -> str:
    """What was measured of C10."""
    own, renewed = table["with a token"], table["with a renewed one"]
    return (
        f"{own.median() / 1e3:.3f} ms a request ({own.min() / 1e3:.3f} to {own.max() / 1e3:.3f} in {len(table)} "
        f"rounds), {renewed.median() / 1e3:.3f} ms where the token is renewed. The bare application takes "
        f"{table.bare.median() / 1e3:.3f} ms, one HMAC {table.hmac.median() / 1e3:.3f} ms."
    )


def verdict(table: pd.DataFrame) -> Outcome:
    """12 ms, within a factor of two either way, in most rounds."""
    ms = table["with a token"].median() / 1e3
    return "holds" if CLAIMED_MS / 2 <= ms <= 2 * CLAIMED_MS else "fails"
