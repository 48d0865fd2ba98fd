"""A client that was made in one cell, and is used by a button."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from redis import asyncio as aioredis

from tri_memory import ChatTurn, RedisSessionStore, blocking
from tri_memory.lab import servers
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, kit, prefix, short

LIMIT_S = 3
UNUSED = 0.25  # how often the button is pressed before any cell has used the client


def make_button(client: Any, key: str) -> Callable[[], int]:
    """What a widget calls, in a thread: how many turns there are."""

    async def length() -> int:
        return int(await client.llen(key))

    def on_click() -> int:
        return asyncio.run(asyncio.wait_for(length(), LIMIT_S))

    return on_click


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    turn: ChatTurn = rng.choice(kit(language).sessions).turns[0]
    used, session, url = rng.random() >= UNUSED, f"{rng.getrandbits(64):x}", servers.redis().url
    client: Any = aioredis.Redis.from_url(url, socket_timeout=LIMIT_S)
    store = RedisSessionStore.from_url(url, prefix=prefix())
    key = f"{prefix()}button:{session}"
    if used:
        await client.rpush(key, turn.to_json())
        await store.append(session, turn)
    button = make_button(client, key) if how == "broken" else lambda: len(blocking(store).get_history(session))
    loop = asyncio.get_running_loop()
    try:
        with ThreadPoolExecutor(1) as thread:
            came = f"the button shows {await loop.run_in_executor(thread, button)}"
            failed = 0
    except (RuntimeError, TimeoutError, ConnectionError, aioredis.RedisError) as error:
        came, failed = f"{type(error).__name__}: {short(str(error), 50)}", 1
    await _tidy(client, store, key, session)
    return Outcome(f"{came} ({'after' if used else 'before'} a cell used it)", failed, 1)


async def _tidy(client: Any, store: RedisSessionStore, key: str, session: str) -> None:
    await store.clear(session)
    await store.close()
    fresh: Any = aioredis.Redis.from_url(servers.redis().url)
    await fresh.delete(key)
    await fresh.aclose()
    with suppress(RuntimeError):  # its connection may belong to a loop that is gone
        await client.aclose()


EXHIBIT = Exhibit(
    name="other loop",
    reference="redis-py#3351",
    kind="notebook",
    title="A client of another event loop",
    unit="clicks that failed",
    notebook="05_sessions_in_redis",
    broken=(make_button,),
    show=show,
    fault="A connection belongs to the event loop it was opened on. `asyncio.run` makes a new loop in the "
    "widget's thread, and the client brings along the old connection. Where no cell has used the client "
    "yet, it works.",
    ours="`from_url` keeps a client for each loop, and `blocking(store)` gives a button plain calls.",
)
