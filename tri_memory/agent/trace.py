"""One structured record a turn: which memory was used, where it came from, what it cost, what was left out and why.

A record holds no text of a memory unless it is asked for, and the user only behind a mask, so that it may stand in a
log. The default mask is an HMAC under a key of this process: one user has one name in it, and nobody learns which.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import NamedTuple
from urllib.parse import quote

from tri_memory.agent.budget import LeftOut
from tri_memory.agent.known import Known
from tri_memory.agent.prompt import Section
from tri_memory.clock import Clock
from tri_memory.recall.gate import Hit

CONVERSATION = ("system", "window")  # sections that are no memory of earlier times
_KEY = secrets.token_bytes(32)

Mask = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class TracedItem:
    """An item that the budget left out. `item` is its text, or None."""

    layer: str
    tokens: int
    reason: str
    item: str | None


@dataclass(frozen=True, slots=True)
class TracedHit:
    """An episode that was found, its scores as in `Candidate`, and whether it went in. `text` is its text, or None."""

    session_id: str
    cosine: float
    lexical_rank: int | None
    age_weight: float
    verdict: str
    reason: str
    text: str | None


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """One turn. `at` is ISO 8601 in UTC; `user` is masked, also where the user's id stands in a session's.

    `memory_source` names the sections that memory filled; `latency_ms` runs from the question to the assembled prompt,
    `answer_ms` from there to the answer; `tokens` is by section; `error` names what the turn ended with, or is None.
    """

    at: str
    user: str
    session_id: str
    memory_used: bool
    memory_source: tuple[str, ...]
    latency_ms: float
    answer_ms: float
    tokens: dict[str, int]
    left_out: tuple[TracedItem, ...]
    hits: tuple[TracedHit, ...]
    error: str | None

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))


Sink = Callable[[TurnTrace], object]


def process_mask(user_id: str) -> str:
    """`user-` and 12 hex digits, the same for the same user until the process ends."""
    return "user-" + hmac.new(_KEY, user_id.encode(), hashlib.sha256).hexdigest()[:12]


class Tracer:
    """Writes a record of each turn to `sink`; nothing happens where that is None.

    A sink that raises costs a RuntimeWarning, and nobody an answer.
    """

    def __init__(self, sink: Sink | None, *, mask: Mask, texts: bool, clock: Clock) -> None:
        self._sink, self._mask, self._texts, self._clock = sink, mask, texts, clock

    @contextmanager
    def turn(self, user_id: str, session_id: str) -> Iterator[Draft]:
        draft = Draft()
        error: str | None = None
        try:
            yield draft
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            if self._sink is not None:
                self._write(self._sink, Who(user_id, session_id, self._mask), draft, error)

    def _write(self, sink: Sink, who: Who, draft: Draft, error: str | None) -> None:
        ended = time.perf_counter()
        assembled = draft.assembled_at or ended
        try:
            sections = draft.sections()
            source = tuple(section.name for section in sections if section.name not in CONVERSATION)
            trace = TurnTrace(
                at=self._clock().isoformat(),
                user=who.masked(who.user_id),
                session_id=who.masked(who.session_id),
                memory_used=bool(source),
                memory_source=source,
                latency_ms=round((assembled - draft.started_at) * 1e3, 3),
                answer_ms=round((ended - assembled) * 1e3, 3),
                tokens={section.name: section.tokens for section in sections},
                left_out=tuple(self._item(each) for each in draft.left_out),
                hits=tuple(self._hit(hit, who) for hit in draft.known.hits),
                error=error,
            )
            sink(trace)
        except Exception as failed:
            warnings.warn(f"a turn was not traced: {type(failed).__name__}: {failed}", RuntimeWarning, stacklevel=2)

    def _item(self, out: LeftOut) -> TracedItem:
        return TracedItem(out.layer, out.tokens, out.reason, out.item if self._texts else None)

    def _hit(self, hit: Hit, who: Who) -> TracedHit:
        one = hit.candidate
        session = who.masked(one.key)
        text = one.text if self._texts else None
        return TracedHit(session, one.cosine, one.lexical_rank, one.age_weight, hit.verdict, hit.reason, text)


class Who(NamedTuple):
    """Whose turn it is, and how to speak of them."""

    user_id: str
    session_id: str
    mask: Mask

    def masked(self, text: str) -> str:
        """The user's id in it behind the mask, as it stands or percent-encoded, as in the key of a session."""
        mask = self.mask(self.user_id)
        return text.replace(self.user_id, mask).replace(quote(self.user_id, safe=""), mask)


class Draft:
    """What a turn has told about itself so far."""

    def __init__(self) -> None:
        self.started_at = time.perf_counter()
        self.assembled_at: float | None = None
        self.known = Known()
        self.left_out: Sequence[LeftOut] = ()
        self.sections: Callable[[], list[Section]] = list

    def assembled(self, known: Known, left_out: Sequence[LeftOut], sections: Callable[[], list[Section]]) -> None:
        self.assembled_at = time.perf_counter()
        self.known, self.left_out, self.sections = known, left_out, sections
