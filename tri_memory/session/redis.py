"""Layer 1 in Redis: the same store, for several processes, and it outlives them.

Keys, for the default prefix; `id` is the session id with `%`, `{` and `}` percent-encoded, so that no two ids share a
key and all keys of a session share a hash slot:

    agent:sess:{id}         list    turns as JSON, oldest first
    agent:sess:{id}:meta    hash    weight of the list, number of its head, last activity, failed folds
    agent:sess:{id}:lock    string  who is writing a summary now
    agent:sess:{id}:seen    zset    the appends of the last minute, so that none is made twice
    agent:sess:index        zset    session ids, most recently active with the highest score

What it does not do: keep anything longer than `ttl_s` after the last append.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from redis.exceptions import ReadOnlyError

from tri_memory.contracts import (
    ChatTurn,
    SessionSummary,
    require_count,
    require_seconds,
    require_text,
    shown,
)
from tri_memory.engines.closing import Closing
from tri_memory.engines.redis_client import ClientOfOneLoop, ClientPerLoop, Connected, is_cluster, run_script
from tri_memory.session import compression
from tri_memory.session.compression import CompressionPolicy
from tri_memory.session.folding import Folding, Outcome, appends_to_skip, log
from tri_memory.session.redis_scripts import APPEND, COMMIT, DROP, TOUCH
from tri_memory.summary import is_summary

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ROWS_AT_ONCE = 500
_LONGEST_S = 10_000_000_000  # more than 300 years; Redis counts milliseconds in 64 bits


@dataclass(kw_only=True, eq=False, repr=False)
class RedisSessionStore(Closing, Folding):
    """Sessions in Redis 7 or newer, Valkey 8 or newer, or a Redis Cluster, shared by any number of processes.

    `client` is a `redis.asyncio.Redis` or `RedisCluster`, used on one event loop; `from_url` makes one for each loop.
    The other options and the `trace`, which holds this store's own folds, are those of Folding. A session ends
    `ttl_s` seconds after its last append; stores that share a `prefix` share their sessions and need the same `ttl_s`,
    or the list loses those that live longer. While a summary is written nobody else of the session waits for it: a
    lock of `lock_s` seconds spares the others the cost of a second one.
    Raises ConnectionError, naming the server, where it can't be reached.
    """

    client: Any = field(kw_only=False)
    ttl_s: float = 86_400
    prefix: str = "agent:sess:"
    lock_s: float = 15.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, seconds in (("ttl_s", self.ttl_s), ("lock_s", self.lock_s)):
            if not 0.001 <= require_seconds(name, seconds) <= _LONGEST_S:
                raise ValueError(f"{name} must be from 0.001 to {_LONGEST_S:,} seconds; got {shown(seconds)}")
        if not isinstance(self.prefix, str) or "{" in self.prefix or "}" in self.prefix:
            raise ValueError(
                f"prefix must be a string without braces, which name the hash slot; got {shown(self.prefix)}"
            )
        self._clients = self.client if isinstance(self.client, ClientPerLoop) else ClientOfOneLoop(self.client)
        self._index = f"{self.prefix}index"

    @classmethod
    def from_url(cls, url: str, **options: Any) -> RedisSessionStore:
        """A store at `redis://…`, `rediss://…` or `unix://…`, with clients of its own that wait 5 s at most for an
        answer and outlast a restart of about 3 s. ValueError for another URL."""
        return cls(ClientPerLoop(url), **options)

    async def close(self) -> None:
        """Close what `from_url` opened on this loop; a client that was passed in stays open."""
        await self._clients.close()

    def __repr__(self) -> str:
        return f"RedisSessionStore({self._clients.where}, prefix={self.prefix!r})"

    async def append(self, session_id: str, turn: ChatTurn) -> None:
        require_text("session_id", session_id)
        if not isinstance(turn, ChatTurn):
            raise ValueError(f"turn must be a ChatTurn; got {shown(turn)}")
        token = secrets.token_urlsafe(6)
        push = self._push(session_id, turn, token)
        async with Connected(self._clients) as client:
            if is_cluster(client):
                claim = await self._append_in_cluster(client, session_id, push)
            else:
                claim = await run_script(client, APPEND, [*self._keys(session_id), self._index], push)
        if claim:
            try:
                await self._unhurt(self._fold(session_id, token, *claim))
            except ConnectionError as error:  # the turn is stored; its caller must not send it again
                log.warning("a fold was not committed: %s", error)

    async def _append_in_cluster(self, client: Any, session_id: str, push: tuple[str | int, ...]) -> Any:
        """The index stands on another node. Where it can't be touched the turn is stored all the same."""
        push_it = run_script(client, APPEND, self._keys(session_id), push)
        touch_it = run_script(client, TOUCH, [self._index], [session_id, int(self.ttl_s * 1_000)])
        claim: Any
        touched: Any
        claim, touched = await asyncio.gather(push_it, touch_it, return_exceptions=True)
        if isinstance(claim, BaseException):
            raise claim
        if isinstance(touched, BaseException):
            log.warning("the index was not touched: %s", touched)
        return claim

    def _push(self, session_id: str, turn: ChatTurn, token: str) -> tuple[str | int, ...]:
        policy = self.policy
        return (
            turn.to_json(),
            policy.weigh(turn),
            _unit(policy),
            policy.high_line,
            policy.hard_line,
            int(self.ttl_s * 1_000),
            (self._now() - _EPOCH) // _MICROSECOND,
            token,
            int(self.lock_s * 1_000),
            session_id,
        )

    async def get_window(self, session_id: str, limit: int = 20) -> list[ChatTurn]:
        require_count("limit", limit)
        return compression.window(await self.get_history(session_id), limit)

    async def get_history(self, session_id: str) -> list[ChatTurn]:
        require_text("session_id", session_id)
        async with Connected(self._clients) as client:
            turns = await client.lrange(self._keys(session_id)[0], 0, -1)
        return [ChatTurn.from_json(turn) for turn in turns]

    async def clear(self, session_id: str) -> None:
        require_text("session_id", session_id)
        async with Connected(self._clients) as client, client.pipeline(transaction=False) as pipe:
            await pipe.delete(*self._keys(session_id)).zrem(self._index, session_id).execute()

    async def list_sessions(self) -> list[SessionSummary]:
        """All sessions, most recently active first. Those that have expired since go from the index."""
        async with Connected(self._clients) as client:
            members = await client.zrange(self._index, 0, -1, desc=True, withscores=True)
            rows: list[SessionSummary] = []
            for start in range(0, len(members), _ROWS_AT_ONCE):
                rows += await self._rows(client, members[start : start + _ROWS_AT_ONCE])
            return rows

    async def _rows(self, client: Any, members: list[tuple[Any, float]]) -> list[SessionSummary]:
        async with client.pipeline(transaction=False) as pipe:
            for member, _ in members:
                turns, meta, *_ = self._keys(_text(member))
                pipe.llen(turns)
                pipe.hget(meta, "updated_at")
            replies = await pipe.execute()
        rows, ghosts = [], []
        for (member, score), length, updated_at in zip(members, replies[::2], replies[1::2], strict=True):
            if length:
                at = _EPOCH + int(updated_at or score) * _MICROSECOND
                rows.append(SessionSummary(_text(member), length, at))
            else:
                ghosts += [_text(member), f"{score:.0f}"]
        if ghosts:
            with suppress(ReadOnlyError):  # a replica: whoever reads from the primary cleans it
                await run_script(client, DROP, [self._index], ghosts)
        return rows

    async def _fold(self, session_id: str, token: str, weight: int, failures: int, head: Any, raw: list[Any]) -> None:
        turns = [ChatTurn.from_json(turn) for turn in raw]
        weights = [self.policy.weigh(turn) for turn in turns]
        span = self.policy.plan(turns, weights)
        planned = turns[span.start : span.stop]
        outcome: Outcome
        if span.empty:  # then the commit only releases the lock and mends the weight
            outcome, replacement, reason = "kept", planned, None
        else:
            outcome, replacement, reason = await self._replacement(planned)
        keep = outcome == "truncated" and self.on_failure == "keep"
        failures = failures + 1 if keep else 0
        skip = "reset" if outcome == "folded" else appends_to_skip(failures) if keep else ""
        drift = sum(weights) - weight  # what the list weighs, less what the server thought it weighs
        shed = sum(map(self.policy.weigh, replacement)) - sum(weights[span.start : span.stop])
        arguments: list[str | int] = [token, _unit(self.policy), drift, shed, self.policy.hard_line]
        arguments += [failures, skip, _text(head), span.start, len(planned), len(replacement)]
        arguments += [turn.to_json() for turn in replacement]
        arguments += map(_text, raw[span.start : span.stop])
        async with Connected(self._clients) as client:
            done = _text(await run_script(client, COMMIT, self._keys(session_id), arguments))
        if planned and done != "lost":
            self._record(session_id, "kept" if done == "kept" else outcome, planned, reason)

    async def _replacement(self, planned: list[ChatTurn]) -> tuple[Outcome, list[ChatTurn], str | None]:
        summary, reason = await self._summary_of(planned)
        if summary is not None:
            return "folded", [summary], None
        return "truncated", [turn for turn in planned[:1] if is_summary(turn)], reason

    def _keys(self, session_id: str) -> list[str]:
        name = session_id.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
        turns = f"{self.prefix}{{{name}}}"
        return [turns, f"{turns}:meta", f"{turns}:lock", f"{turns}:seen"]


def _unit(policy: CompressionPolicy) -> str:
    """What a weight in Redis is a weight of: another policy, or another tokenizer, has to weigh for itself."""
    count = getattr(policy, "count", None)
    where = (getattr(count, "__module__", ""), getattr(count, "__qualname__", ""))
    line = getattr(getattr(count, "__code__", None), "co_firstlineno", "")  # tells one lambda from another
    return " ".join(str(part) for part in (type(policy).__name__, *where, line) if part)


def _text(reply: Any) -> str:
    return reply.decode() if isinstance(reply, bytes) else str(reply)
