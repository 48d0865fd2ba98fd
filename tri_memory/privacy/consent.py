"""Sensitive memory needs a yes in this conversation, and anything but a clear yes is no.

A yes holds for one subject in one session, and ends with it. Each subject is asked about once; a no, said at any later
time, takes back every yes of the session.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tri_memory.agent.confirmation import Language, folded, is_clear_yes
from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import as_utc, require_seconds, require_text

QUESTIONS: dict[Language, str] = {
    "en": "Do you want the details of {}?",
    "zh": "需要我说出{}的详情吗？",
}
TTL_S = 86_400.0  # as long as a session that nobody writes to
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_NO = re.compile(
    r"(?:no|nope|nah|never|stop|don't|do not|rather not|i'd rather not|forget (?:it|that))\b.*"
    r"|(?:不|别|否|没有|停|算了|取消|撤回).*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Question:
    """What the user is asked, and about what. An answer to another question is no answer to this one."""

    subject: str
    text: str = field(compare=False)
    number: int


@dataclass(slots=True)
class _State:
    touched_at: datetime
    verdicts: dict[str, bool] = field(default_factory=dict)
    pending: Question | None = None


class Consent:
    """What each user agreed to in each session. Safe for several threads; it does not outlive the process, and neither
    should a yes.

    >>> consent = Consent()
    >>> question = consent.ask("case MC-3061", user_id="ann", session_id="s1")
    >>> question.text
    'Do you want the details of case MC-3061?'
    >>> consent.answer("Yes, please.", question, user_id="ann", session_id="s1")
    True
    >>> consent.allows("case MC-3061", user_id="ann", session_id="s1")
    True
    """

    name = "consent"

    def __init__(self, *, ttl_s: float = TTL_S, clock: Clock = system_clock) -> None:
        self._life, self._clock = timedelta(seconds=require_seconds("ttl_s", ttl_s)), clock
        self._sessions: dict[tuple[str, str], _State] = {}
        self._asked = 0
        self._lock = threading.Lock()

    def allows(self, subject: str, *, user_id: str, session_id: str) -> bool:
        """Whether this user said yes to this subject in this session, and has not taken it back."""
        place = _place(user_id, session_id)
        with self._lock:
            state = self._alive(place)
            return state is not None and state.verdicts.get(_tidy(subject), False)

    def ask(self, subject: str, *, user_id: str, session_id: str, language: Language | None = None) -> Question | None:
        """The question to put to the user, and nothing else in that turn; None where it was asked in this session
        already. Another question that still waits for its answer counts as answered by no."""
        place, subject = _place(user_id, session_id), _tidy(subject)
        with self._lock:
            state = self._alive(place) or self._sessions.setdefault(place, _State(self._now()))
            if subject in state.verdicts:
                return None
            state.verdicts[subject] = False  # until a clear yes
            self._asked += 1
            if language is None:
                language = "zh" if _HAN.search(subject) else "en"
            state.pending = Question(subject, QUESTIONS[language].replace("{}", subject), self._asked)
            state.touched_at = self._now()
            return state.pending

    def answer(self, text: object, question: Question, *, user_id: str, session_id: str) -> bool:
        """What the user said next: True where that is a clear yes and `question` is the one that they were asked last.

        A question can be answered once. Anything else is no, and stays no in this session.
        """
        place = _place(user_id, session_id)
        with self._lock:
            state = self._alive(place)
            if state is None:
                return False
            asked, state.pending = state.pending, None
            state.touched_at = self._now()
            if asked is None or asked != question:
                self._take_back(state, text)
                return False
            state.verdicts[question.subject] = is_clear_yes(text)
            self._take_back(state, text)
            return state.verdicts[question.subject]

    def hear(self, text: object, *, user_id: str, session_id: str) -> None:
        """Any other turn of the user: a question that still waits lapses to no, and a no takes back every yes."""
        place = _place(user_id, session_id)
        with self._lock:
            state = self._alive(place)
            if state is not None:
                state.pending, state.touched_at = None, self._now()
                self._take_back(state, text)

    def revoke(self, subject: str, *, user_id: str, session_id: str) -> None:
        """From now on no, for the rest of this session."""
        place = _place(user_id, session_id)
        with self._lock:
            state = self._alive(place) or self._sessions.setdefault(place, _State(self._now()))
            state.verdicts[_tidy(subject)] = False
            if state.pending is not None and state.pending.subject == _tidy(subject):
                state.pending = None

    def end(self, *, user_id: str, session_id: str) -> None:
        """The session is over, and with it what was agreed in it."""
        with self._lock:
            self._sessions.pop(_place(user_id, session_id), None)

    async def forget(self, user_id: str) -> int:
        """Drop all of one user's sessions; how many subjects had been asked about."""
        require_text("user_id", user_id)
        with self._lock:
            theirs = [place for place in self._sessions if place[0] == user_id]
            return sum(len(self._sessions.pop(place).verdicts) for place in theirs)

    async def find(self, user_id: str, canary: str) -> int:
        """How many of this user's subjects have `canary` in them."""
        with self._lock:
            theirs = [state for place, state in self._sessions.items() if place[0] == user_id]
            return sum(canary in subject for state in theirs for subject in state.verdicts)

    def _alive(self, place: tuple[str, str]) -> _State | None:
        """The session's state; those that nobody touched for too long go first."""
        oldest = self._now() - self._life
        for other in [each for each, state in self._sessions.items() if state.touched_at <= oldest]:
            del self._sessions[other]
        return self._sessions.get(place)

    def _take_back(self, state: _State, text: object) -> None:
        if _is_no(text):
            state.verdicts = dict.fromkeys(state.verdicts, False)

    def _now(self) -> datetime:
        return as_utc("the clock's time", self._clock())


def _is_no(text: object) -> bool:
    return isinstance(text, str) and _NO.fullmatch(folded(text)) is not None


def _tidy(subject: str) -> str:
    return unicodedata.normalize("NFC", " ".join(require_text("subject", subject).split()))


def _place(user_id: str, session_id: str) -> tuple[str, str]:
    return require_text("user_id", user_id), require_text("session_id", session_id)
