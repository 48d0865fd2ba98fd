"""What every engine is told about folds, and how it calls the summariser: bounded in time, checked, and never able to
stop the conversation."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import ChatTurn, as_utc, require_count, require_seconds, shown
from tri_memory.embedding.texts import is_blank
from tri_memory.session.compression import CompressionPolicy, CountPolicy
from tri_memory.summary import Summarizer, call_summarizer, is_summary, summary_text, summary_turn

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


@dataclass(kw_only=True, eq=False, repr=False)
class Folding:
    """The options of a session store, the same for every engine, and the `trace` of its last 1,000 folds.

    `summarizer` is called with the turns to fold and returns their summary; `on_failure` says what happens without
    one: `"truncate"` cuts them, `"keep"` keeps them up to the policy's hard line and tries again after 1, 2, 4, 8, …
    appends. Raises ValueError, naming the option, for what is none.
    """

    policy: CompressionPolicy = field(default_factory=CountPolicy)
    summarizer: Summarizer | None = None
    on_failure: OnFailure = "truncate"
    clock: Clock = system_clock
    summary_timeout_s: float = 10.0
    longest_summary: int = 2_000
    trace: deque[FoldRecord] = field(init=False, default_factory=lambda: deque(maxlen=1_000))
    _running: set[asyncio.Task[None]] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        if isinstance(self.policy, type) or not hasattr(self.policy, "plan"):
            raise ValueError(
                f"policy must be a CountPolicy(…), a TokenWatermark(…) or the like; got {shown(self.policy)}"
            )
        if not callable(self.clock):
            raise ValueError(f"clock must be a function that returns an aware time; got {shown(self.clock)}")
        require_seconds("summary_timeout_s", self.summary_timeout_s)
        require_count("longest_summary", self.longest_summary, least=1)
        if self.on_failure not in ("truncate", "keep"):
            raise ValueError(f"on_failure must be 'truncate' or 'keep'; got {shown(self.on_failure)}")
        if self.summarizer is not None and not callable(self.summarizer):
            raise ValueError(f"summarizer must be a function from turns to text; got {shown(self.summarizer)}")

    def _now(self) -> datetime:
        now = self.clock()
        return now if getattr(now, "tzinfo", None) is UTC else as_utc("clock()", now)

    async def _unhurt(self, fold: Coroutine[Any, Any, None]) -> None:
        """Wait for a fold. A caller that is cancelled doesn't throw the paid summary away: the fold goes on."""
        task = asyncio.ensure_future(fold)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await asyncio.shield(task)

    async def _summary_of(self, span: Sequence[ChatTurn]) -> tuple[ChatTurn | None, str | None]:
        """The summary turn, or why there is none."""
        try:
            summary = await condense(
                span,
                summarizer=self.summarizer,
                policy=self.policy,
                timeout_s=self.summary_timeout_s,
                longest=self.longest_summary,
            )
        except SummaryFailed as failure:
            return None, str(failure)
        return summary, None

    def _record(self, session_id: str, outcome: Outcome, planned: Sequence[ChatTurn], reason: str | None) -> None:
        turns = len(planned) - sum(map(is_summary, planned[:1]))
        if reason:  # what a summariser raises may hold what no log file can
            reason = reason.encode("utf-8", "backslashreplace").decode()
        self.trace.append(FoldRecord(session_id, outcome, turns, reason, self._now()))
        if reason and self.summarizer is not None:
            log.warning("%d turns %s: %s", turns, outcome, reason)


def appends_to_skip(failures: int) -> int:
    """How many appends to let pass after so many failed folds in a row: 0, 1, 3, 7, … 63."""
    return int(min(2 ** (failures - 1), 64)) - 1


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
