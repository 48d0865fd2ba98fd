"""What a summary turn looks like, and how a summariser is called: in bounded time, whatever it does."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tri_memory.contracts import ChatTurn

Summarizer = Callable[[Sequence[ChatTurn]], str | Awaitable[str]]

PREFIXES = {"zh": "[会话摘要] ", "en": "[conversation summary] "}


def is_summary(turn: ChatTurn) -> bool:
    """Whether this is the turn that a fold wrote, in either language."""
    return turn.role == "system" and turn.content.startswith(tuple(PREFIXES.values()))


def summary_turn(text: str) -> ChatTurn:
    """The summary as a system turn, with the prefix of its language, once."""
    for prefix in PREFIXES.values():
        text = text.strip().removeprefix(prefix.strip())
    language = "zh" if any("\u4e00" <= letter <= "\u9fff" for letter in text) else "en"
    return ChatTurn("system", PREFIXES[language] + text.strip())


def summary_text(turn: ChatTurn) -> str:
    """What stands behind the prefix of a summary turn."""
    return turn.content.split("] ", 1)[1]


async def call_summarizer(summarizer: Summarizer, turns: Sequence[ChatTurn], *, timeout_s: float | None = None) -> Any:
    """What the summariser returns, sync or async; TimeoutError after `timeout_s` seconds, even where it ignores that.

    A plain function runs in a daemon thread, so it can't block the loop or hold up the exit. Whatever would end a task
    or a loop (SystemExit, CancelledError of its own) becomes a RuntimeError.
    """
    task = asyncio.ensure_future(_called(summarizer, tuple(turns)))
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        finished, _ = await asyncio.wait({task}, timeout=timeout_s)
        if not finished:
            raise TimeoutError(f"the summariser took longer than {timeout_s:g} s")
        if task.cancelled():
            raise RuntimeError("CancelledError")
        return task.result()
    finally:
        task.cancel()


async def _called(summarizer: Summarizer, turns: tuple[ChatTurn, ...]) -> Any:
    try:
        if inspect.iscoroutinefunction(summarizer) or inspect.iscoroutinefunction(type(summarizer).__call__):
            return await summarizer(turns)  # type: ignore[misc]
        result = await _in_daemon_thread(summarizer, turns)
        return await result if inspect.isawaitable(result) else result
    except (KeyboardInterrupt, SystemExit) as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _in_daemon_thread(function: Callable[[Any], Any], argument: Any) -> asyncio.Future[Any]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(method: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            method(value)

    def work() -> None:
        try:
            outcome = (future.set_result, function(argument))
        except BaseException as error:
            if isinstance(error, StopIteration) or not isinstance(error, Exception):
                error = RuntimeError(f"{type(error).__name__}: {error}")  # what would end a task or the loop
            outcome = (future.set_exception, error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=work, name="tri_memory.summarizer", daemon=True).start()
    return future
