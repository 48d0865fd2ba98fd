"""Layer 1 in a dictionary: the session store to read first.

What it does not do: outlive the process, or be shared between processes.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import ChatTurn, SessionSummary, as_utc, require_count, require_text, shown
from tri_memory.session import compression
from tri_memory.session.compression import CompressionPolicy, CountPolicy, Span
from tri_memory.session.folding import NO_SUMMARIZER, FoldRecord, OnFailure, Outcome, SummaryFailed, condense, log
from tri_memory.summary import Summarizer, is_summary


@dataclass(slots=True)
class _Session:
    turns: list[ChatTurn] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)
    weight: int = 0
    updated_at: datetime | None = None
    activity: int = 0
    folding: bool = False
    failures: int = 0
    skip: int = 0  # appends to let pass before a failed fold is tried again


class InMemorySessionStore:
    """Sessions in this process.

    `summarizer` is called with the turns to fold and returns their summary; `on_failure` says what happens without
    one: `"truncate"` cuts them, `"keep"` keeps them up to the policy's hard line and tries again after 1, 2, 4, 8, …
    appends. `.trace` holds the last 1,000 folds, cuts and failures as FoldRecord.
    Safe for several coroutines, and for several threads with loops of their own.
    """

    def __init__(
        self,
        *,
        policy: CompressionPolicy | None = None,
        summarizer: Summarizer | None = None,
        on_failure: OnFailure = "truncate",
        clock: Clock = system_clock,
        summary_timeout_s: float = 10.0,
        longest_summary: int = 2_000,
    ) -> None:
        if policy is not None and (isinstance(policy, type) or not hasattr(policy, "plan")):
            raise ValueError(f"policy must be a CountPolicy(…), a TokenWatermark(…) or the like; got {shown(policy)}")
        if not callable(clock):
            raise ValueError(f"clock must be a function that returns an aware time; got {shown(clock)}")
        if (
            isinstance(summary_timeout_s, bool)
            or not isinstance(summary_timeout_s, int | float)
            or summary_timeout_s <= 0
        ):
            raise ValueError(f"summary_timeout_s must be a number of seconds above 0; got {shown(summary_timeout_s)}")
        require_count("longest_summary", longest_summary, least=1)
        if on_failure not in ("truncate", "keep"):
            raise ValueError(f"on_failure must be 'truncate' or 'keep'; got {shown(on_failure)}")
        if summarizer is not None and not callable(summarizer):
            raise ValueError(f"summarizer must be a function from turns to text; got {shown(summarizer)}")
        self.policy: CompressionPolicy = policy if policy is not None else CountPolicy()
        self.summarizer = summarizer
        self.on_failure = on_failure
        self.clock = clock
        self.summary_timeout_s = summary_timeout_s
        self.longest_summary = longest_summary
        self.trace: deque[FoldRecord] = deque(maxlen=1_000)
        self._sessions: dict[str, _Session] = {}
        self._activity = count(1)
        self._folds: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()  # held for list surgery only, never while a summary is written

    async def append(self, session_id: str, turn: ChatTurn) -> None:
        if type(session_id) is not str or session_id not in self._sessions:  # an id that is there was checked before
            require_text("session_id", session_id)
        if not isinstance(turn, ChatTurn):
            raise ValueError(f"turn must be a ChatTurn; got {shown(turn)}")
        weight = self.policy.weigh(turn)
        now = self.clock()
        if getattr(now, "tzinfo", None) is not UTC:
            now = as_utc("clock()", now)
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None:
                session = self._sessions[session_id] = _Session()
            session.turns.append(turn)
            session.weights.append(weight)
            session.weight += weight
            session.updated_at = now
            session.activity = next(self._activity)
            if session.weight <= self.policy.high_line:
                return
            span = self._claim(session)
            if not span.empty and self.summarizer is None:  # nobody to wait for
                planned = session.turns[span.start : span.stop]
                session.folding = False
                self._commit(session_id, session, span, planned, None, NO_SUMMARIZER)
                return
        if not span.empty:
            fold = asyncio.ensure_future(self._fold(session_id, session, span))
            self._folds.add(fold)
            fold.add_done_callback(self._folds.discard)
            await asyncio.shield(fold)  # a caller that is cancelled doesn't throw the summary away

    async def get_window(self, session_id: str, limit: int = 20) -> list[ChatTurn]:
        require_count("limit", limit)
        return compression.window(await self.get_history(session_id), limit)

    async def get_history(self, session_id: str) -> list[ChatTurn]:
        require_text("session_id", session_id)
        with self._lock:
            session = self._sessions.get(session_id)
            return list(session.turns) if session else []

    async def clear(self, session_id: str) -> None:
        require_text("session_id", session_id)
        with self._lock:
            self._sessions.pop(session_id, None)

    async def list_sessions(self) -> list[SessionSummary]:
        with self._lock:
            newest_first = sorted(
                self._sessions.items(), key=lambda item: (item[1].updated_at, item[1].activity), reverse=True
            )
            return [SessionSummary(key, len(s.turns), s.updated_at) for key, s in newest_first if s.updated_at]

    def _claim(self, session: _Session) -> Span:
        """What to fold now, with the session marked as folding; empty while another fold runs or must wait."""
        if session.folding:
            return Span(0, 0)
        if session.skip and session.weight <= self.policy.hard_line:
            session.skip -= 1
            return Span(0, 0)
        span = self.policy.plan(session.turns, session.weights)
        session.folding = not span.empty
        return span

    async def _fold(self, session_id: str, session: _Session, span: Span) -> None:
        planned = session.turns[span.start : span.stop]
        summary: ChatTurn | None = None
        reason: str | None = None
        try:
            summary = await condense(
                planned,
                summarizer=self.summarizer,
                policy=self.policy,
                timeout_s=self.summary_timeout_s,
                longest=self.longest_summary,
            )
        except SummaryFailed as failure:
            reason = str(failure)
        finally:
            with self._lock:
                cancelled = summary is None and reason is None
                cleared = self._sessions.get(session_id) is not session
                if not (cancelled or cleared):
                    self._commit(session_id, session, span, planned, summary, reason)
                session.folding = False

    def _commit(
        self,
        session_id: str,
        session: _Session,
        span: Span,
        planned: list[ChatTurn],
        summary: ChatTurn | None,
        reason: str | None,
    ) -> None:
        """Replace the planned head. Turns appended since stand behind it and are not touched."""
        old_summaries = [turn for turn in planned[:1] if is_summary(turn)]
        new_turns = len(planned) - len(old_summaries)
        outcome: Outcome
        if summary is not None:
            outcome, replacement = "folded", [summary]
            session.failures = session.skip = 0
        elif self.on_failure == "truncate" or session.weight > self.policy.hard_line:
            outcome, replacement = "truncated", old_summaries
        else:
            outcome, replacement = "kept", planned
            session.failures += 1
            session.skip = min(2 ** (session.failures - 1), 64) - 1
        session.turns[span.start : span.stop] = replacement
        session.weights[span.start : span.stop] = [self.policy.weigh(turn) for turn in replacement]
        session.weight = sum(session.weights)
        self.trace.append(FoldRecord(session_id, outcome, new_turns, reason, self.clock()))
        if reason and self.summarizer is not None:
            log.warning("%d turns %s: %s", new_turns, outcome, reason)
