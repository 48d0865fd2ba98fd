"""A TCP proxy between a client and a server, which can lose what it is told to lose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """`url` leads through it. `requests` counts what the client sent before the server spoke: its round trips.

    `lose_next_reply` lets the next request through, and hangs up where the answer should come. `silent` swallows all.
    """

    def __init__(self) -> None:
        self.url = ""
        self.requests = 0
        self.lose_next_reply = False
        self.silent = False
        self._waiting: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(host, port)
        lose = False

        async def requests() -> None:
            nonlocal lose
            while data := await reader.read(1 << 20):
                self.requests += 1
                if self.silent:
                    continue
                if self.lose_next_reply:
                    self.lose_next_reply, lose = False, True
                upstream_writer.write(data)
                await upstream_writer.drain()

        async def replies() -> None:
            while data := await upstream_reader.read(1 << 20):
                if lose:
                    return
                writer.write(data)
                await writer.drain()

        both = [asyncio.ensure_future(requests()), asyncio.ensure_future(replies())]
        self._waiting.update(both)
        with suppress(ConnectionError):
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        self._waiting.difference_update(both)
        for end in (writer, upstream_writer):
            end.close()


@asynccontextmanager
async def proxy(url: str) -> AsyncIterator[Proxy]:
    """A proxy before the server at `url`, on a port of its own."""
    server = urlsplit(url)
    between = Proxy()
    listening = await asyncio.start_server(
        lambda reader, writer: between.serve(reader, writer, server.hostname or "", server.port or 0), "127.0.0.1", 0
    )
    account = server.netloc.rpartition("@")[0]
    port = listening.sockets[0].getsockname()[1]
    between.url = f"{server.scheme}://{account}@127.0.0.1:{port}{server.path}"
    try:
        yield between
    finally:
        listening.close()
        for task in list(between._waiting):
            task.cancel()
        await asyncio.sleep(0)
