"""What the cache asks Redis: short calls, none of which raises because of Redis."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from redis.client import NEVER_DECODE

from tri_memory.contracts import require_seconds, shown
from tri_memory.engines.redis_client import ClientOfOneLoop, ClientPerLoop, Connected, run_script
from tri_memory.entity.cache_scripts import BEGIN, END, FILL, OPEN, SETTLE, Script
from tri_memory.entity.key_names import NameOf, in_a_key, require_prefix

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Stats:
    """Reads are `hits`, or `misses`, which the truth answered. `failures`: calls that Redis answered badly or not."""

    hits: int = 0
    misses: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """A write under way, and the entries that there were when it began."""

    name: str
    entries: list[Any]


class Keys:
    """The keys of one user."""

    def __init__(self, prefix: str, name: str) -> None:
        self._base = f"{prefix}{{{name}}}"
        self.pointer, self.writing, self.index = (f"{self._base}:{what}" for what in ("version", "writing", "index"))

    def entry(self, kind: str, version: str) -> str:
        return f"{self._base}:{kind}:{version}"


class CacheCalls:
    """The calls, each within `limit_s` seconds. What a call gives is None where it failed; then, and for `pause_s`
    seconds after, without Redis being asked."""

    def __init__(
        self,
        client: Any,
        *,
        ttl_s: float,
        check_s: float,
        limit_s: float,
        pause_s: float,
        prefix: str,
        name_of: NameOf,
    ) -> None:
        self._ttl_ms, self._check_ms = _milliseconds("ttl_s", ttl_s), _milliseconds("check_s", check_s)
        self._limit_s, self._pause_s = require_seconds("limit_s", limit_s), require_seconds("pause_s", pause_s)
        self._prefix, self._name_of, self._quiet_until = require_prefix(prefix), name_of, 0.0
        self._clients = client if isinstance(client, ClientPerLoop) else ClientOfOneLoop(client)
        self.where = f"{self._clients.where}, prefix={prefix!r}"
        self.stats = Stats()
        self.close = self._clients.close

    def keys(self, user_id: str) -> Keys:
        return Keys(self._prefix, in_a_key(self._name_of, user_id))

    async def get(self, *names: str) -> list[bytes | None] | None:
        """The values of keys of one user, as bytes, whatever the client does with others."""
        found: list[bytes | None] | None = await self._call(
            lambda client: client.execute_command("MGET", *names, **{NEVER_DECODE: []}), list
        )
        return found

    async def ticket(self, keys: Keys) -> str | None:
        """A ticket to ask the truth with; the version, where it is known by now; or '' while somebody writes."""
        reply = await self._run(
            OPEN, [keys.pointer, keys.writing], f"?{secrets.token_hex(8)}", self._check_ms, kind=(bytes, str)
        )
        return None if reply is None else text(reply)

    async def settle(self, keys: Keys, entry: str, ticket: str, version: str) -> Any:
        """The entry of the version that the truth gave, empty where there is none; 0 for a ticket that is void."""
        return await self._run(SETTLE, [keys.pointer, entry], ticket, version, kind=(bytes, str, int))

    async def fill(self, keys: Keys, entry: str, version: str, value: str) -> None:
        await self._run(FILL, [keys.pointer, entry, keys.index], version, value, self._ttl_ms, kind=int)

    async def begin(self, keys: Keys) -> Mark | None:
        name = secrets.token_hex(8)
        entries = await self._run(BEGIN, [keys.pointer, keys.writing, keys.index], name, self._check_ms, kind=list)
        return None if entries is None else Mark(name, entries)

    async def end(self, keys: Keys, mark: Mark) -> bool:
        """Take the mark and all entries away; whether that was done."""
        names = [keys.pointer, keys.writing, keys.index]
        left = await self._run(END, [*names, *map(text, mark.entries)], mark.name, kind=list)
        if left:  # they came when a long write's mark was believed no more
            left = await self._run(END, [*names, *map(text, left)], mark.name, kind=list)
        return left is not None

    async def _run(self, script: Script, keys: list[str], *arguments: str | int, kind: Any) -> Any:
        return await self._call(lambda client: run_script(client, script, keys, arguments), kind)

    async def _call(self, command: Callable[[Any], Awaitable[Any]], kind: Any) -> Any:
        if time.monotonic() < self._quiet_until:
            return None
        connected = Connected(self._clients)  # raises for a client of another loop, which is a mistake to be seen
        try:
            async with asyncio.timeout(self._limit_s), connected as client:
                reply = await command(client)
            if not isinstance(reply, kind):
                raise TypeError(f"it answered with a {type(reply).__name__}")
            return reply
        except Exception as error:  # whatever a client makes of a broken server, the truth is there
            self.stats.failures += 1
            if not isinstance(error, UnicodeDecodeError):  # which says something of one value, not of the server
                self._quiet_until = time.monotonic() + self._pause_s
            log.warning("the cache at %s failed: %s", self._clients.where, str(error) or type(error).__name__)
            return None


def text(reply: Any) -> str:
    return reply.decode("utf-8", "surrogateescape") if isinstance(reply, bytes) else str(reply)


def _milliseconds(name: str, seconds: Any) -> int:
    if not 0.001 <= require_seconds(name, seconds) <= 10_000_000:
        raise ValueError(f"{name} must be from 0.001 to 10,000,000 seconds; got {shown(seconds)}")
    return int(seconds * 1_000)
