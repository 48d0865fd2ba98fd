"""How a fold calls the summariser: bounded in time, checked, and never able to stop the conversation."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from tri_memory.contracts import ChatTurn, shown
from tri_memory.session.compression import CompressionPolicy, summary_turn

Summarizer = Callable[[Sequence[ChatTurn]], str | Awaitable[str]]
OnFailure = Literal["truncate", "keep"]
Outcome = Literal["folded", "truncated", "kept"]

log = logging.getLogger("tri_memory.session")


@dataclass(frozen=True, slots=True)
class FoldRecord:
    """One line of a session store's `trace`.

    `turns` turns were folded into the summary, cut without one, or kept for a later try; an old summary turn does not
    count. `reason` says why a summary was not to be had.
    """

    session_id: str
    outcome: Outcome
    turns: int
    reason: str | None
    at: datetime


class SummaryFailed(Exception):
    """The summariser gave nothing that may stand in the history; the message says why."""


async def condense(
    span: Sequence[ChatTurn],
    *,
    summarizer: Summarizer | None,
    policy: CompressionPolicy,
    timeout_s: float,
    longest: int,
) -> ChatTurn:
    """The summary turn that may replace `span`.

    Raises SummaryFailed for a summariser that is missing, raises, takes longer than `timeout_s` seconds, or returns no
    text, blank text, more than `longest` characters, or more than the policy's `summary_line`.
    """
    if summarizer is None:
        raise SummaryFailed("no summariser is set")
    try:
        text = await call_summarizer(summarizer, span, timeout_s=timeout_s)
    except TimeoutError as error:
        raise SummaryFailed(str(error) or "the summariser timed out") from error
    except Exception as error:
        raise SummaryFailed(f"the summariser raised {type(error).__name__}: {error}") from error
    if not isinstance(text, str):
        raise SummaryFailed(f"the summariser returned {shown(text)}, not text")
    if not text.strip():
        raise SummaryFailed("the summariser returned a blank text")
    if len(text) > longest:
        raise SummaryFailed(f"the summary has {len(text):,} characters, more than {longest:,}")
    try:
        turn = summary_turn(text)
    except ValueError as error:
        raise SummaryFailed(f"the summary can't be stored: {error}") from error
    if policy.weigh(turn) > policy.summary_line:
        raise SummaryFailed(f"the summary weighs {policy.weigh(turn):,}, more than {policy.summary_line:,}")
    return turn


async def call_summarizer(summarizer: Summarizer, turns: Sequence[ChatTurn], *, timeout_s: float) -> Any:
    """What the summariser returns, sync or async; TimeoutError after `timeout_s` seconds, even where it ignores that.

    A plain function runs in a daemon thread: it can't block the loop, and a hanging one can't hold up the exit.
    """
    task = asyncio.ensure_future(_called(summarizer, tuple(turns)))
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        finished, _ = await asyncio.wait({task}, timeout=timeout_s)
        if not finished:
            raise TimeoutError(f"the summariser took longer than {timeout_s:g} s")
        return task.result()
    finally:
        task.cancel()


async def _called(summarizer: Summarizer, turns: tuple[ChatTurn, ...]) -> Any:
    if inspect.iscoroutinefunction(summarizer) or inspect.iscoroutinefunction(type(summarizer).__call__):
        return await summarizer(turns)  # type: ignore[misc]
    result = await _in_daemon_thread(summarizer, turns)
    return await result if inspect.isawaitable(result) else result


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
