"""A small application over the stores: remember, recall, forget, each for the one user whom the token names."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import EpisodicRecord, EpisodicStore, PreferenceStore, refuse_surrogates
from tri_memory.embedding import Embedder
from tri_memory.entity.records import Forgotten
from tri_memory.privacy.forget import Stores, forget_user
from tri_memory.privacy.guarded import guarded
from tri_memory.privacy.tombstones import Tombstones
from tri_memory.privacy.unit import begin_unit
from tri_memory.web.middleware import MemoryTokenMiddleware, current_user, require_same_user
from tri_memory.web.token import MemoryTokens

LONGEST_BODY = 65_536  # bytes
MOST_EPISODES = 50


def memory_app(
    tokens: MemoryTokens,
    *,
    preferences: PreferenceStore,
    episodes: EpisodicStore,
    embedder: Embedder,
    clock: Clock = system_clock,
    tombstones: Tombstones | None = None,
) -> Starlette:
    """A Starlette application behind MemoryTokenMiddleware. JSON in, JSON out:

        POST /remember  {"key", "value"}           -> {"kept": true}, false where the guard rails dropped it
        POST /remember  {"session_id", "summary"}  -> {"kept": true}
        GET  /recall?query=…&k=3                   -> {"preferences": {…}, "episodes": [{…}]}
        POST /forget                               -> {"preferences": 2, "episodes": 1}, how many went
        GET  /users/{user_id}/recall               the same as /recall
        GET  /health                               -> {"ok": true}, without a token

    The user is always the token's. A path, a query or a body that names another `user_id` is a 403; what is not
    understood is a 400 with the reason, and a body over 64 kB a 413. With `tombstones`, the registry of the forgotten,
    a request that was under way when its user was forgotten writes nothing and is a 409; without, what it writes stays.
    Where not everything could be forgotten, /forget is a 503 that names the stores.
    """
    if tombstones is not None:
        preferences, episodes = guarded(preferences, tombstones), guarded(episodes, tombstones)
    memory = _Memory(preferences, episodes, embedder, clock, tombstones)
    return Starlette(
        routes=[
            Route("/remember", memory.remember, methods=["POST"]),
            Route("/recall", memory.recall, methods=["GET"]),
            Route("/users/{user_id}/recall", memory.recall, methods=["GET"]),
            Route("/forget", memory.forget, methods=["POST"]),
            Route("/health", _health, methods=["GET"]),
        ],
        middleware=[Middleware(MemoryTokenMiddleware, tokens=tokens)],
        exception_handlers={HTTPException: _as_json, Forgotten: _forgotten},
    )


class _Memory:
    """The three endpoints."""

    def __init__(
        self,
        preferences: PreferenceStore,
        episodes: EpisodicStore,
        embedder: Embedder,
        clock: Clock,
        tombstones: Tombstones | None,
    ) -> None:
        self._preferences = preferences
        self._episodes = episodes
        self._embedder = embedder
        self._clock = clock
        self._tombstones = tombstones

    async def remember(self, request: Request) -> JSONResponse:
        body = await _body(request)
        user_id = _user(request, body)
        if self._tombstones is not None:  # what is done for this request is judged by when it came
            await begin_unit(self._tombstones, user_id, anew=True)
        if "key" in body and "summary" not in body:
            kept = await self._preferences.set(user_id, _text(body, "key"), _text(body, "value"))
            return JSONResponse({"kept": kept})
        summary = _text(body, "summary")
        vector = await self._vector(summary)
        try:
            record = EpisodicRecord(user_id, _text(body, "session_id"), summary, vector, self._clock())
            await self._episodes.remember(record)
        except ValueError as error:
            raise HTTPException(400, str(error)) from error
        return JSONResponse({"kept": True})

    async def recall(self, request: Request) -> JSONResponse:
        user_id = _user(request, {})
        query, k = request.query_params.get("query", ""), request.query_params.get("k", "3")
        if not (k.isascii() and k.isdigit() and len(k) < 4 and 1 <= int(k) <= MOST_EPISODES):
            raise HTTPException(400, f"k must be a whole number from 1 to {MOST_EPISODES}")
        found = await self._episodes.recall(await self._vector(query), int(k), user_id=user_id) if query else []
        episodes = [
            {
                "session_id": each.session_id,
                "summary": each.summary,
                "score": each.score,
                "created_at": each.created_at.isoformat(),
            }
            for each in found
        ]
        return JSONResponse({"preferences": await self._preferences.all(user_id), "episodes": episodes})

    async def forget(self, request: Request) -> JSONResponse:
        user_id = _user(request, await _body(request))
        stores = Stores(preferences=self._preferences, episodes=self._episodes, dimensions=self._embedder.dimensions)
        receipt = await forget_user(user_id, stores=stores, tombstones=self._tombstones, clock=self._clock)
        if not receipt.ok:
            failed = ", ".join(line.store for line in receipt.lines if not line.ok) or "a write that has not ended"
            raise HTTPException(503, f"not everything was forgotten ({failed}): forget again")
        return JSONResponse({line.store: line.erased for line in receipt.lines})

    async def _vector(self, text: str) -> Any:
        """In a thread: a model takes long enough to be felt by every other request."""
        return (await asyncio.to_thread(self._embedder.encode, [text]))[0]


async def _health(request: Request) -> JSONResponse:
    return JSONResponse({"ok": True})


def _user(request: Request, body: dict[str, Any]) -> str:
    """The token's user, after every other place that names one was held against it."""
    named = [request.path_params.get("user_id"), body.get("user_id"), *request.query_params.getlist("user_id")]
    for user_id in named:
        if user_id is not None:
            require_same_user(request, user_id)
    return current_user(request)


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object that was sent; {} for no body."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > LONGEST_BODY:
            raise HTTPException(413, f"the body is longer than {LONGEST_BODY:,} bytes")
    try:
        body = json.loads(content) if content.strip() else {}
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise HTTPException(400, "the body must be a JSON object")
    return body


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise HTTPException(400, f"{name} must be a string; send key and value, or session_id and summary")
    try:
        refuse_surrogates(name, value)  # JSON can write half an emoji, which no store takes
    except ValueError as error:
        raise HTTPException(400, str(error)) from error
    return value


async def _forgotten(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": "the user was forgotten meanwhile, so this was not kept"}, 409)


async def _as_json(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)
