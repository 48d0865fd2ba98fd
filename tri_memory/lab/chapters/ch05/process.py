"""The child process of this chapter: reads one request (JSON) from standard input, does it, prints the answer and ends.

    python -m tri_memory.lab.chapters.ch05.process

The request comes by standard input because it may hold a server's password, which everybody could read in `ps`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from tri_memory.contracts import SessionStore
from tri_memory.lab import datasets
from tri_memory.session.memory import InMemorySessionStore
from tri_memory.session.redis import RedisSessionStore

LIFE_S = 3_600


def store_at(url: str | None, prefix: str) -> SessionStore:
    """In Redis where there is a URL, else in this process's own memory."""
    return RedisSessionStore.from_url(url, prefix=prefix, ttl_s=LIFE_S) if url else InMemorySessionStore()


async def remember(store: SessionStore, session_id: str) -> str:
    """Append a visit from the kit's data, turn by turn."""
    visits = datasets.load(session_id[:2]).sessions
    turns = next(visit.turns for visit in visits if visit.session_id == session_id)
    await store.clear(session_id)  # so that a cell that is run twice tells the same
    for turn in turns:
        await store.append(session_id, turn)
    return f"process {os.getpid()} stored {len(turns)} turns of {session_id}, and ended"


async def ask(store: SessionStore, session_id: str) -> str:
    """What a process that has just begun finds of it."""
    turns = await store.get_history(session_id)
    last = f", the last one: {turns[-1].content[:40]}" if turns else ""
    return f"process {os.getpid()} finds {len(turns)} turns of {session_id}{last}"


async def answer(request: dict[str, Any]) -> str:
    if request["do"] == "write":
        from tri_memory.lab.chapters.ch05 import writers

        return await writers.write_all(request)
    store = store_at(request["url"], request["prefix"])
    try:
        return await {"remember": remember, "ask": ask}[request["do"]](store, request["session_id"])
    finally:
        if isinstance(store, RedisSessionStore):
            await store.close()


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print(asyncio.run(answer(json.load(sys.stdin))))
