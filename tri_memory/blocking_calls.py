"""The same store as plain calls, for widget callbacks and scripts.

One event loop runs in a thread of its own; each call is handed to it and waited for. That works inside a running
notebook, where `asyncio.run` would refuse.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import wraps
from typing import Any


def blocking(store: Any) -> Any:
    """Every coroutine method of `store` as a plain one; other attributes as they are.

    An awaitable, as a store that has to connect first gives, is awaited on the same loop.

    >>> prefs = blocking(InMemoryPreferenceStore())
    >>> prefs.set("ann", "size", "42")
    True
    """
    return BlockingStore(run(store) if inspect.isawaitable(store) else store)


def run(awaitable: Awaitable[Any]) -> Any:
    """Wait for `awaitable` on the background loop; RuntimeError on that loop itself, where it would wait for ever."""
    loop, thread = _background_loop()
    if threading.current_thread() is thread:
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        raise RuntimeError("a blocking call inside the blocking loop would wait for itself; await the store instead")
    future = asyncio.run_coroutine_threadsafe(_wait(awaitable), loop)
    try:
        value, ended = future.result()
    except KeyboardInterrupt:
        future.cancel()
        raise
    if ended is not None:
        raise ended
    return value


class BlockingStore:
    """What `blocking` returns. `.store` is the store behind it."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        if name == "store":  # asked for before it is there, as copy does
            raise AttributeError(name)
        attribute = getattr(self.store, name)
        return _as_plain_call(attribute) if inspect.iscoroutinefunction(attribute) else attribute

    def __dir__(self) -> list[str]:
        return ["store", *(name for name in dir(self.store) if not name.startswith("_"))]

    def __repr__(self) -> str:
        return f"blocking({self.store!r})"


def _as_plain_call(method: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return run(method(*args, **kwargs))

    return call


async def _wait(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """The value; or what would end the loop's thread, and with it every later call: the caller raises that instead."""
    try:
        return await awaitable, None
    except (KeyboardInterrupt, SystemExit) as ended:
        return None, ended


_starting = threading.Lock()
_loops: dict[int, tuple[asyncio.AbstractEventLoop, threading.Thread]] = {}


def _background_loop() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    """One loop a process: a forked child has no copy of its parent's thread, so it starts its own."""
    with _starting:
        if os.getpid() not in _loops:
            loop = asyncio.new_event_loop()
            atexit.register(_end, os.getpid(), loop)
            thread = threading.Thread(target=loop.run_forever, name="tri_memory.blocking", daemon=True)
            thread.start()
            _loops[os.getpid()] = loop, thread
        return _loops[os.getpid()]


def _end(process: int, loop: asyncio.AbstractEventLoop) -> None:
    """At exit, cancel what still waits there, such as a pool's workers; Python would complain about each of them."""

    async def cancel() -> None:
        waiting = asyncio.all_tasks() - {asyncio.current_task()}
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting, timeout=1)

    if process == os.getpid():  # a forked child has the list of what to do at exit, and not the thread
        with suppress(Exception):  # a loop that is blocked goes with the process all the same
            asyncio.run_coroutine_threadsafe(cancel(), loop).result(timeout=2)
