"""A line between client and server that loses answers: the server has done it, and the client is never told.

It is a small TCP proxy on 127.0.0.1. It passes everything on, except that now and then it closes the connection instead
of passing on the answer to a write.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from redis import asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from tri_memory.contracts import ChatTurn
from tri_memory.session.redis import RedisSessionStore

WRITES = (b"RPUSH", b"EVAL")
LIFE_S = 300


@asynccontextmanager
async def line(url: str, every: int) -> AsyncIterator[str]:
    """The URL of a line to the server at `url` that loses the answer to every `every`-th write."""
    parts = urlsplit(url)
    writes = 0
    open_now: set[asyncio.StreamWriter] = set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal writes
        behind, ahead = await asyncio.open_connection(parts.hostname, parts.port)
        open_now.update((writer, ahead))
        with suppress(ConnectionError):
            while request := await reader.read(65_536):
                ahead.write(request)
                answer = await behind.read(65_536)
                writes += any(name in request for name in WRITES)
                if not answer or (writes and writes % every == 0 and any(name in request for name in WRITES)):
                    break
                writer.write(answer)
        for end in (writer, ahead):
            end.close()
            open_now.discard(end)

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    account = parts.netloc.rpartition("@")[0]
    try:
        yield urlunsplit((parts.scheme, f"{account}@127.0.0.1:{port}", parts.path, "", ""))
    finally:
        server.close()
        for end in list(open_now):
            end.close()
        await server.wait_closed()


async def doubled(url: str, prefix: str, turns: Sequence[ChatTurn], every: int) -> dict[str, tuple[int, int]]:
    """The same turns by a plain RPUSH with retries, and by the store, over such a line: turns kept, turns missing."""
    found = {}
    async with line(url, every) as lossy:
        again = Retry(ConstantBackoff(0.001), 6, (RedisConnectionError,))
        client: Any = aioredis.Redis.from_url(lossy, socket_timeout=5, retry=again)
        key = f"{prefix}plain:{uuid4().hex[:6]}"
        for turn in turns:
            await client.rpush(key, turn.to_json())
        await client.expire(key, LIFE_S)
        kept = await client.lrange(key, 0, -1)
        await client.unlink(key)
        await client.aclose()
        found["RPUSH and retry"] = _compared(turns, [ChatTurn.from_json(turn) for turn in kept])
        async with RedisSessionStore.from_url(lossy, prefix=f"{prefix}lossy:", ttl_s=LIFE_S) as store:
            session_id = uuid4().hex[:6]
            for turn in turns:
                await store.append(session_id, turn)
            found["the store"] = _compared(turns, await store.get_history(session_id))
            await store.clear(session_id)
    return found


def _compared(sent: Sequence[ChatTurn], kept: Sequence[ChatTurn]) -> tuple[int, int]:
    return len(kept), sum((Counter(sent) - Counter(kept)).values())
