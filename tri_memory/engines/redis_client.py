"""A Redis client for every event loop, and how a script is called.

A connection belongs to the loop it was made on. A store made in one notebook cell and used through `blocking` lives on
two loops, so `from_url` stores keep one client for each.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from redis import asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import (
    ClusterCrossSlotError,
    InvalidResponse,
    MaxConnectionsError,
    NoScriptError,
    RedisClusterException,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from tri_memory.engines.address import without_password
from tri_memory.engines.ready import one_line

ANSWER_WITHIN_S = 5.0
"""A server that takes a connection and doesn't answer is given up after so many seconds."""

CONNECTIONS = 50
"""So many calls on one loop go out at once; the others wait for their turn."""


class Script(Protocol):
    """A Lua script and its SHA-1 digest."""

    @property
    def text(self) -> str: ...

    @property
    def sha(self) -> str: ...


class ClientPerLoop:
    """A client for each event loop, made when first asked for on it."""

    def __init__(self, url: str) -> None:
        self.where = without_password(url)
        self._url = url
        self._here: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Any, asyncio.Semaphore]] = WeakKeyDictionary()
        try:  # a URL that is none is an error now, not at the first append
            self._make().connection_pool.make_connection()
        except (ValueError, TypeError):  # whose text may quote a part of the password
            raise ValueError(
                f"{self.where} is no Redis URL: it is redis://:password@host:6379/0 (or rediss://, unix://), with "
                "special characters of the password percent-encoded"
            ) from None

    def here(self) -> tuple[Any, asyncio.Semaphore]:
        """The running loop's client, and what its calls queue at."""
        loop = asyncio.get_running_loop()
        if loop not in self._here:
            self._here[loop] = self._make(), asyncio.Semaphore(CONNECTIONS)
        return self._here[loop]

    async def close(self) -> None:
        """Close the running loop's client; those of loops that are gone went with them."""
        client, _ = self._here.pop(asyncio.get_running_loop(), (None, None))
        if client is not None:
            await client.aclose()

    def _make(self) -> Any:
        # Only a lost connection is tried again, as while a server restarts (about 3 s in all); silence is not.
        again = Retry(ExponentialWithJitterBackoff(base=0.1, cap=1.0), 6, (RedisConnectionError,))
        return aioredis.Redis.from_url(
            self._url, socket_timeout=ANSWER_WITHIN_S, socket_connect_timeout=ANSWER_WITHIN_S, retry=again
        )


class ClientOfOneLoop:
    """The client that the caller made; RuntimeError on another loop than the first, where it would hang or break."""

    def __init__(self, client: Any) -> None:
        if not inspect.iscoroutinefunction(getattr(client, "execute_command", None)):
            raise ValueError(
                f"client must be a redis.asyncio.Redis or RedisCluster; got {type(client).__name__}; "
                "a store that is made with from_url(url) makes one itself"
            )
        settings = getattr(getattr(client, "connection_pool", None), "connection_kwargs", {})
        host = settings.get("path") or settings.get("host", "the given client")
        self.where = f"{host}:{settings.get('port', '')}".rstrip(":")
        self._client = client
        self._loop: asyncio.AbstractEventLoop | None = None

    def here(self) -> tuple[Any, None]:
        """The client; its calls queue nowhere."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise RuntimeError(
                "this store's Redis client belongs to another event loop; "
                "a store that is made with from_url(url) keeps a client for each"
            )
        return self._client, None

    async def close(self) -> None:
        """Nothing: who made the client closes it."""


class Connected:
    """`async with Connected(clients) as client` around one call. A lost, refused or silent connection becomes Python's
    own ConnectionError, saying which server it was."""

    def __init__(self, clients: ClientPerLoop | ClientOfOneLoop) -> None:
        self._where = clients.where
        here: tuple[Any, asyncio.Semaphore | None] = clients.here()
        self._client, self._turn = here

    async def __aenter__(self) -> Any:
        if self._turn is not None:
            await self._turn.acquire()
        if is_cluster(self._client):  # its first calls, made at the same time, would break each other's connections
            try:
                await self._client.initialize()
            except (RedisError, RedisClusterException) as error:
                raise self._unreachable(error) from error
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._turn is not None:
            self._turn.release()
        if isinstance(error, MaxConnectionsError):
            raise ConnectionError(
                f"all connections of the client to Redis at {self._where} are in use; give it a "
                "BlockingConnectionPool, in which calls wait, or use a store that is made with from_url(url)"
            ) from error
        if isinstance(error, RedisConnectionError | RedisTimeoutError | RedisClusterException | InvalidResponse):
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> ConnectionError:
        return ConnectionError(
            f"Redis at {self._where} can't be reached: {one_line(error)}. Start it, or correct the URL; "
            "tri-memory doctor shows what is there"
        )


async def run_script(client: Any, script: Script, keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
    """The reply, in one round trip; a server that hasn't seen the script gets its text in a second one."""
    try:
        return await client.evalsha(script.sha, len(keys), *keys, *arguments)
    except NoScriptError:
        return await client.eval(script.text, len(keys), *keys, *arguments)
    except ResponseError as error:
        if "unknown command 'evalsha'" in str(error):
            raise ImportError("fakeredis runs scripts only with its Lua extra: pip install 'fakeredis[lua]'") from error
        if isinstance(error, ClusterCrossSlotError):
            raise ValueError(
                "this server is a node of a Redis Cluster: give the store a redis.asyncio.RedisCluster client"
            ) from error
        raise


def is_cluster(client: Any) -> bool:
    """Whether keys of different hash slots need calls of their own."""
    return isinstance(client, aioredis.RedisCluster)
