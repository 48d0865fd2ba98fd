"""How a fold calls the summariser: bounded in time, checked, and never able to stop the conversation."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tri_memory.contracts import ChatTurn, shown
from tri_memory.embedding.texts import is_blank
from tri_memory.session.compression import CompressionPolicy
from tri_memory.summary import Summarizer, call_summarizer, summary_text, summary_turn

OnFailure = Literal["truncate", "keep"]
Outcome = Literal["folded", "truncated", "kept"]

NO_SUMMARIZER = "no summariser is set"

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
        raise SummaryFailed(NO_SUMMARIZER)
    try:
        text = await call_summarizer(summarizer, span, timeout_s=timeout_s)
    except TimeoutError as error:
        raise SummaryFailed(str(error) or "the summariser timed out") from error
    except Exception as error:
        raise SummaryFailed(f"the summariser raised {type(error).__name__}: {error}") from error
    if not isinstance(text, str):
        raise SummaryFailed(f"the summariser returned {shown(text)}, not text")
    if len(text) > longest:
        raise SummaryFailed(f"the summary has {len(text):,} characters, more than {longest:,}")
    try:
        turn = summary_turn(text)
        weight = policy.weigh(turn)
    except Exception as error:
        raise SummaryFailed(f"the summary can't be kept: {error}") from error
    if is_blank(summary_text(turn)):
        raise SummaryFailed("the summariser returned a blank text")
    if weight > policy.summary_line:
        raise SummaryFailed(f"the summary weighs {weight:,}, more than {policy.summary_line:,}")
    return turn
