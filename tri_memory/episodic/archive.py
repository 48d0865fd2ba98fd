"""A finished session becomes an episode: turns -> summary -> vector -> record."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import ChatTurn, EpisodicRecord, EpisodicStore, SessionStore, require_text, shown
from tri_memory.embedding import Embedder
from tri_memory.embedding.texts import is_blank, storable
from tri_memory.summary import Summarizer, call_summarizer, is_summary, summary_text, summary_turn


class ArchiveError(RuntimeError):
    """The session was not archived and nothing was stored; the message says which session and why."""


async def archive(
    session_id: str,
    *,
    user_id: str,
    sessions: SessionStore,
    episodes: EpisodicStore,
    embedder: Embedder,
    summarizer: Summarizer,
    clock: Clock = system_clock,
    summary_timeout_s: float = 10.0,
    longest_summary: int = 2_000,
) -> EpisodicRecord | None:
    """Store one record for this session and return it; None where nothing was said in it.

    Again for the same session: the record is replaced, and the store keeps its first `created_at`. The session itself
    stays as it is. `longest_summary` counts characters.
    Raises ArchiveError for a summariser that raises, is late, or gives no text, blank text or too much of it, and for
    an embedder that raises or gives anything but one finite vector of its own size, not all zeros.
    """
    require_text("session_id", session_id)
    require_text("user_id", user_id)
    said = _what_was_said(await sessions.get_history(session_id))
    if not said:
        return None
    try:
        summary = await _summary(said, summarizer, summary_timeout_s, longest_summary)
        embedding = await _embedding(summary, embedder)
    except ArchiveError as error:
        message = f"session {shown(session_id)} was not archived, nothing was stored: {error}"
        raise ArchiveError(message) from error.__cause__
    record = EpisodicRecord(user_id, session_id, summary, embedding, clock())
    await episodes.remember(record)
    return record


def _what_was_said(history: Sequence[ChatTurn]) -> Sequence[ChatTurn]:
    """The history without the application's own system turn at its head, which says nothing about this user."""
    starts_with_own = bool(history) and history[0].role == "system" and not is_summary(history[0])
    return history[1:] if starts_with_own else history


async def _summary(turns: Sequence[ChatTurn], summarizer: Summarizer, timeout_s: float, longest: int) -> str:
    try:
        text = await call_summarizer(summarizer, turns, timeout_s=timeout_s)
    except Exception as error:
        raise ArchiveError(f"the summariser raised {type(error).__name__}: {error}") from error
    if not isinstance(text, str):
        raise ArchiveError(f"the summariser returned {shown(text)}, not text")
    text = summary_text(summary_turn(storable(text)))  # a model may repeat the prefix that it was shown
    if is_blank(text):
        raise ArchiveError("the summariser returned a blank text")
    if len(text) > longest:
        raise ArchiveError(f"the summary has {len(text):,} characters, more than {longest:,}")
    return text


async def _embedding(summary: str, embedder: Embedder) -> NDArray[np.float32]:
    """In a thread: a model takes long enough to be felt by every other coroutine of the loop."""
    try:
        rows = await asyncio.to_thread(embedder.encode, [summary])
    except Exception as error:
        raise ArchiveError(f"the embedder {embedder.name} raised {type(error).__name__}: {error}") from error
    try:
        matrix = np.asarray(rows, np.float32)
    except (TypeError, ValueError):
        raise ArchiveError(f"the embedder {embedder.name} returned {shown(rows)}, not an array of numbers") from None
    if matrix.shape != (1, embedder.dimensions):
        wanted = (1, embedder.dimensions)
        raise ArchiveError(f"the embedder {embedder.name} returned an array of shape {matrix.shape}, not {wanted}")
    if not np.isfinite(matrix).all() or not matrix.any():
        raise ArchiveError(f"the embedder {embedder.name} returned a vector of zeros, or one with NaN or infinity")
    vector: NDArray[np.float32] = matrix[0]
    return vector
