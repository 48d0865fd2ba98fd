"""A client that was made in one cell, and is used by a button."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from redis import asyncio as aioredis

from tri_memory import ChatTurn, RedisSessionStore, blocking
from tri_memory.lab import servers
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, kit, prefix

LIMIT_S = 3
UNUSED = 0.25  # how often the button is pressed before any cell has used the client


class Button:
    """What a widget calls, in a thread of its own: how many turns there are."""

    def __init__(self, client: Any, key: str) -> None:
        self.client, self.key = client, key
        self.loop = asyncio.new_event_loop()

    def on_click(self) -> int:
        reply = asyncio.wait_for(self.client.llen(self.key), LIMIT_S)
        return int(self.loop.run_until_complete(reply))


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    turn: ChatTurn = rng.choice(kit(language).sessions).turns[0]
    used, session = rng.random() >= UNUSED, f"{rng.getrandbits(64):x}"
    with ThreadPoolExecutor(1) as thread:
        return await (_broken if how == "broken" else _ours)(thread, turn, session, used)


async def _broken(thread: Executor, turn: ChatTurn, session: str, used: bool) -> Outcome:
    here, url, key = asyncio.get_running_loop(), servers.redis().url, f"{prefix()}button:{session}"
    client: Any = aioredis.Redis.from_url(url, socket_timeout=LIMIT_S)
    button = Button(client, key)
    if used:
        await client.rpush(key, turn.to_json())
    try:
        outcome = _seen(await here.run_in_executor(thread, button.on_click), used)
    except (RuntimeError, TimeoutError, ConnectionError, aioredis.RedisError) as error:
        outcome = Outcome(f"{type(error).__name__}: …{str(error)[-48:]} ({_when(used)})", 1, 1)
    await here.run_in_executor(thread, _close, button)
    with suppress(RuntimeError):
        await client.aclose()
    async with aioredis.Redis.from_url(url) as fresh:
        await fresh.delete(key)
    return outcome


async def _ours(thread: Executor, turn: ChatTurn, session: str, used: bool) -> Outcome:
    store = RedisSessionStore.from_url(servers.redis().url, prefix=prefix())
    if used:
        await store.append(session, turn)
    button = blocking(store)
    turns = await asyncio.get_running_loop().run_in_executor(thread, button.get_history, session)
    await asyncio.get_running_loop().run_in_executor(thread, button.close)
    await store.clear(session)
    await store.close()
    return _seen(len(turns), used)


def _close(button: Button) -> None:
    """Close what was opened on the button's loop."""
    with suppress(RuntimeError):  # the other connections belong to another loop
        button.loop.run_until_complete(button.client.connection_pool.disconnect())
    button.loop.run_until_complete(asyncio.sleep(0))
    button.loop.close()


def _seen(turns: int, used: bool) -> Outcome:
    return Outcome(f"the button shows {turns} ({_when(used)})", int(turns != used), 1)


def _when(used: bool) -> str:
    return f"{'after' if used else 'before'} a cell used it"


EXHIBIT = Exhibit(
    name="other loop",
    reference="redis-py#3351",
    kind="notebook",
    set_by_hand=1 - UNUSED,
    title="A client of another event loop",
    unit="clicks that failed",
    notebook="05_sessions_in_redis",
    broken=(Button,),
    show=show,
    fault="A connection belongs to the event loop it was opened on. The button's thread has a loop of its own, and"
    " the client brings along the connection of the cell's. Where no cell has used the client yet, it works, and"
    " where one has, it may still work now and then. (The report is of the client library, which is no memory system.)",
    ours="`from_url` keeps a client for each loop, and `blocking(store)` gives a button plain calls.",
)
