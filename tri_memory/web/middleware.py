"""Who is asking: every request carries a memory token, or gets a 401 that says why.

Pure ASGI, so that it goes around any Starlette or FastAPI application and never touches a body. What it does not do:
log anybody in. Whoever checks passwords issues the first token.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tri_memory.web.token import LONGEST_TOKEN, Claims, MemoryTokens, TokenMalformed, TokenRefused

HEADER = "X-Memory-Token"
_NAME = HEADER.lower().encode()


class TokenMissing(TokenRefused):
    """The request carries none."""

    error = "missing"


class MemoryTokenMiddleware:
    """Puts the token's user id into `scope["state"]["user_id"]`, which is `request.state.user_id`.

    `exempt` paths, compared whole, need no token and get no user. Lifespan passes. A WebSocket sends its token with
    the handshake, where the answer to a bad one is the same 401, or close code 1008 from a server that can't say more.

    With less than half of the token's life left the response carries a new one in the same header: whoever is active
    at least that often never has to log in again, and most responses hold no credential that a cache or a log might
    keep. Those that do say `Cache-Control: no-store`. A token that the application itself sends stays.
    """

    def __init__(self, app: ASGIApp, tokens: MemoryTokens, exempt: Iterable[str] = ("/health",)) -> None:
        if isinstance(exempt, str):
            raise ValueError(f"exempt must be a list of paths; got {exempt!r}, of which each letter would be one")
        self.app = app
        self.tokens = tokens
        self.exempt = frozenset(exempt)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in self.exempt:
            await self.app(scope, receive, send)
            return
        try:
            claims = self.tokens.read(_token(scope))
        except TokenRefused as refusal:
            await _refuse(scope, refusal, send)
            return
        # A new dictionary: a server that hands the same one to every request must not hand on a user with it.
        scope["state"] = {**(scope.get("state") or {}), "user_id": claims.user_id}
        await self.app(scope, receive, self._renewing(send, claims) if self.tokens.half_over(claims) else send)

    def _renewing(self, send: Send, claims: Claims) -> Send:
        async def send_with_token(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.accept", "websocket.http.response.start"):
                headers = list(message.get("headers") or ())
                if all(bytes(name).lower() != _NAME for name, _ in headers):
                    headers = [(name, value) for name, value in headers if bytes(name).lower() != b"cache-control"]
                    headers += [(_NAME, self.tokens.issue(claims.user_id).encode()), (b"cache-control", b"no-store")]
                    message = {**message, "headers": headers}
            await send(message)

        return send_with_token


def current_user(connection: Mapping[str, Any]) -> str:
    """The user of this request, WebSocket or scope; HTTPException 401 where the middleware put none there."""
    user_id = (connection.get("state") or {}).get("user_id")
    if not isinstance(user_id, str) or not user_id:
        raise HTTPException(401, "no user: this path is exempt, or MemoryTokenMiddleware is not installed")
    return user_id


def require_same_user(connection: Mapping[str, Any], user_id: object) -> str:
    """The user of this request; HTTPException 403 where `user_id`, from a path or a body, is anybody else.

    Ids are compared letter by letter: no trimming, no case folding.
    """
    own = current_user(connection)
    if user_id != own:
        raise HTTPException(403, "the token is for another user")
    return own


def _token(scope: Scope) -> str:
    """The one header's value; TokenMalformed otherwise."""
    values = [bytes(value) for name, value in scope.get("headers") or () if bytes(name).lower() == _NAME]
    if not values:
        raise TokenMissing(f"the header {HEADER} is missing")
    if len(values) > 1:
        raise TokenMalformed(f"the header {HEADER} stands there {len(values)} times; send it once")
    if len(values[0]) > LONGEST_TOKEN:
        raise TokenMalformed(f"the header {HEADER} is longer than {LONGEST_TOKEN:,} bytes")
    if not values[0].strip():
        raise TokenMissing(f"the header {HEADER} is blank")
    return values[0].decode("latin-1")  # any byte has a letter there, and read() takes only ASCII


async def _refuse(scope: Scope, refusal: TokenRefused, send: Send) -> None:
    if scope["type"] == "websocket" and "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1008, "reason": str(refusal)[:120]})
        return
    kind = "http.response" if scope["type"] == "http" else "websocket.http.response"
    body = json.dumps({"error": refusal.error, "reason": str(refusal)}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"www-authenticate", HEADER.encode()),
    ]
    await send({"type": f"{kind}.start", "status": 401, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
