"""What a user said last, for an hour: so that a session that broke off is taken up where it ended.

The digest holds the last three turns of the user and the assistant, a line each, shortened. It is text for a prompt and
no summary: nothing in it is thought out, and what stood in front of it is not in it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import ChatTurn, require_seconds, require_text, shown
from tri_memory.engines.closing import Closing
from tri_memory.engines.redis_client import ClientOfOneLoop, ClientPerLoop, Connected
from tri_memory.entity.key_names import NameOf, hashed, in_a_key, require_prefix

TURNS = 3
LONGEST_LINE = 200  # characters of a turn's content
HOUR_S = 3_600.0
_LONGEST_S = 10_000_000


@runtime_checkable
class ShortContext(Protocol):
    """One digest for each user, whose id is taken to the letter; ValueError for a blank one."""

    async def put(self, user_id: str, turns: Sequence[ChatTurn]) -> None:
        """Keep the digest of the last three of `turns` in place of what there was; where nobody spoke, nothing."""

    async def get(self, user_id: str) -> str | None:
        """The digest; None where there is none, or it is older than an hour."""

    async def forget(self, user_id: str) -> int:
        """Delete it; how many there were."""


def digest(turns: Sequence[ChatTurn]) -> str:
    """The last three turns of user and assistant, oldest first, as `role: content` lines; "" where nobody spoke."""
    for turn in turns:
        if not isinstance(turn, ChatTurn):
            raise ValueError(f"turns must be ChatTurns; got {shown(turn)}")
    spoken = [
        (turn.role, line)
        for turn in turns
        if turn.role in ("user", "assistant") and turn.tool_name is None and (line := " ".join(turn.content.split()))
    ]
    return "\n".join(f"{role}: {_shortened(line)}" for role, line in spoken[-TURNS:])


class InMemoryShortContext:
    """A `ShortContext` in this process, which expires by `clock`. Safe for several coroutines and threads."""

    def __init__(self, *, ttl_s: float = HOUR_S, clock: Clock = system_clock) -> None:
        self._life, self._clock = timedelta(seconds=_lifetime(ttl_s)), clock
        self._kept: dict[str, tuple[datetime, str]] = {}  # oldest first
        self._lock = threading.Lock()

    async def put(self, user_id: str, turns: Sequence[ChatTurn]) -> None:
        """Keep the digest of the last three of `turns` in place of what there was; where nobody spoke, nothing."""
        require_text("user_id", user_id)
        text = digest(turns)
        with self._lock:
            self._kept = {user: kept for user, kept in self._kept.items() if user != user_id and self._lives(kept[0])}
            if text:
                self._kept[user_id] = self._clock(), text

    async def get(self, user_id: str) -> str | None:
        """The digest; None where there is none, or it is older than an hour."""
        require_text("user_id", user_id)
        with self._lock:
            kept = self._kept.get(user_id)
        return kept[1] if kept and self._lives(kept[0]) else None

    async def forget(self, user_id: str) -> int:
        """Delete it; how many there were."""
        require_text("user_id", user_id)
        with self._lock:
            kept = self._kept.pop(user_id, None)
        return int(kept is not None and self._lives(kept[0]))

    def _lives(self, since: datetime) -> bool:
        return self._clock() - since < self._life


class RedisShortContext(Closing):
    """A `ShortContext` for several processes, under `ctx:{user}`, which expires by Redis' own clock.

    `client` is a `redis.asyncio.Redis` or `RedisCluster`, used on one event loop; `from_url` makes one for each loop.
    `name_of` gives a user's name in the key, by default a hash of the id, as in `CachedUserMemoryStore`.
    Raises ConnectionError, naming the server, where that can't be reached.
    """

    def __init__(self, client: Any, *, ttl_s: float = HOUR_S, prefix: str = "ctx:", name_of: NameOf = hashed) -> None:
        self._prefix, self._ttl_ms = require_prefix(prefix), int(_lifetime(ttl_s) * 1_000)
        self._name_of = name_of
        self._clients = client if isinstance(client, ClientPerLoop) else ClientOfOneLoop(client)

    @classmethod
    def from_url(cls, url: str, **options: Any) -> RedisShortContext:
        """With a client of its own for each event loop. ValueError for what is no Redis URL."""
        return cls(ClientPerLoop(url), **options)

    async def put(self, user_id: str, turns: Sequence[ChatTurn]) -> None:
        """Keep the digest of the last three of `turns` in place of what there was; where nobody spoke, nothing."""
        key, text = self._key(user_id), digest(turns)
        async with Connected(self._clients) as client:
            await (client.set(key, text, px=self._ttl_ms) if text else client.delete(key))

    async def get(self, user_id: str) -> str | None:
        """The digest; None where there is none, or it is older than an hour."""
        key = self._key(user_id)
        async with Connected(self._clients) as client:
            kept = await client.get(key)
        return kept.decode() if isinstance(kept, bytes) else kept

    async def forget(self, user_id: str) -> int:
        """Delete it; how many there were."""
        key = self._key(user_id)
        async with Connected(self._clients) as client:
            return int(await client.delete(key))

    async def close(self) -> None:
        """Close what `from_url` opened on this loop; a client that was passed in stays open."""
        await self._clients.close()

    def __repr__(self) -> str:
        return f"RedisShortContext({self._clients.where}, prefix={self._prefix!r})"

    def _key(self, user_id: str) -> str:
        return f"{self._prefix}{{{in_a_key(self._name_of, require_text('user_id', user_id))}}}"


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"


def _lifetime(ttl_s: Any) -> float:
    if not 0.001 <= require_seconds("ttl_s", ttl_s) <= _LONGEST_S:
        raise ValueError(f"ttl_s must be from 0.001 to {_LONGEST_S:,} seconds; got {shown(ttl_s)}")
    return float(ttl_s)
