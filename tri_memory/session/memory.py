"""Layer 1 in a dictionary: the session store to read first.

What it does not do: outlive the process, or be shared between processes.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from tri_memory.contracts import ChatTurn, SessionSummary, require_count, require_text, shown
from tri_memory.session import compression
from tri_memory.session.compression import Span
from tri_memory.session.folding import NO_SUMMARIZER, Folding, Outcome, appends_to_skip
from tri_memory.summary import is_summary


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


@dataclass(kw_only=True, eq=False, repr=False)
class InMemorySessionStore(Folding):
    """Sessions in this process. The options and the `trace` are those of Folding.

    Safe for several coroutines, and for several threads with loops of their own.
    """

    _sessions: dict[str, _Session] = field(init=False, default_factory=dict)
    _activity: count[int] = field(init=False, default_factory=lambda: count(1))
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)  # for list surgery, never for a summary

    async def append(self, session_id: str, turn: ChatTurn) -> None:
        if type(session_id) is not str or session_id not in self._sessions:  # an id that is there was checked before
            require_text("session_id", session_id)
        if not isinstance(turn, ChatTurn):
            raise ValueError(f"turn must be a ChatTurn; got {shown(turn)}")
        weight = self.policy.weigh(turn)
        now = self._now()
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
            await self._unhurt(self._fold(session_id, session, span))

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
            newest_first = sorted(self._sessions.items(), key=lambda item: item[1].activity, reverse=True)
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
        try:
            summary, reason = await self._summary_of(planned)
            with self._lock:
                if self._sessions.get(session_id) is session:  # it was not cleared meanwhile
                    self._commit(session_id, session, span, planned, summary, reason)
        finally:
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
        outcome: Outcome
        if summary is not None:
            outcome, replacement = "folded", [summary]
            session.failures = session.skip = 0
        elif self.on_failure == "truncate" or session.weight > self.policy.hard_line:
            outcome, replacement = "truncated", [turn for turn in planned[:1] if is_summary(turn)]
        else:
            outcome, replacement = "kept", planned
            session.failures += 1
            session.skip = appends_to_skip(session.failures)
        session.turns[span.start : span.stop] = replacement
        session.weights[span.start : span.stop] = [self.policy.weigh(turn) for turn in replacement]
        session.weight = sum(session.weights)
        self._record(session_id, outcome, planned, reason)
