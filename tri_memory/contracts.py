"""The records that memory is made of, and what each of the three layers promises.

An engine (in memory, Redis, Postgres) is anything that keeps these promises; nobody inherits from anything here.
Every store method is a coroutine. `tri_memory.blocking(store)` gives the same methods as plain calls.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Role = Literal["system", "user", "assistant", "tool"]
ROLES: frozenset[str] = frozenset(get_args(Role))


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One message of a conversation.

    A tool call is an assistant turn with a `tool_name`; its result is a `tool` turn with the same `tool_name`.
    Raises ValueError, naming the field and the value, for an unknown role, content that is not a string, and text with
    a lone surrogate (half an emoji), which no server can store.
    """

    role: Role
    content: str
    tool_name: str | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.role, str) and self.role in ROLES):
            raise ValueError(f"role must be one of {', '.join(get_args(Role))}; got {shown(self.role)}")
        if not isinstance(self.content, str):
            raise ValueError(f"content must be a string; got {shown(self.content)}")
        if not self.content.isascii():
            refuse_surrogates("content", self.content)
        if self.tool_name is not None:
            require_text("tool_name", self.tool_name)

    def to_json(self) -> str:
        """`{"role": …, "content": …, "toolName": …}`; `toolName` only where there is one."""
        fields = {"role": self.role, "content": self.content}
        if self.tool_name is not None:
            fields["toolName"] = self.tool_name
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> ChatTurn:
        """The turn that `to_json` wrote; unknown keys are ignored, anything else is a ValueError."""
        try:
            fields = json.loads(text)
            return cls(fields["role"], fields["content"], fields.get("toolName"))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a turn is JSON with role and content; got {shown(text)}") from error


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One row of a session list. `turns` counts what is kept, the summary turn included; `updated_at` is aware UTC."""

    session_id: str
    turns: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class EpisodicRecord:
    """A past session, condensed: its summary and the summary's embedding of shape (dimensions,).

    `created_at` must be aware and is kept in UTC. Raises ValueError for a blank id, a blank summary, a naive time.
    """

    user_id: str
    session_id: str
    summary: str
    embedding: ArrayLike = field(repr=False, compare=False)
    created_at: datetime

    def __post_init__(self) -> None:
        require_text("user_id", self.user_id)
        require_text("session_id", self.session_id)
        require_text("summary", self.summary)
        object.__setattr__(self, "created_at", as_utc("created_at", self.created_at))


@dataclass(frozen=True, slots=True)
class Recollection:
    """What recall found. `score` is the cosine similarity in [-1, 1]; 1 means the same direction."""

    session_id: str
    summary: str
    score: float
    created_at: datetime


@runtime_checkable
class SessionStore(Protocol):
    """Layer 1, what was just said."""

    async def append(self, session_id: str, turn: ChatTurn) -> None:
        """Write one turn at the end; old turns may be folded into the summary turn."""

    async def get_window(self, session_id: str, limit: int = 20) -> list[ChatTurn]:
        """The head (the application's own first system turn and the summary turn, where there are such), then the last
        `limit` of the other turns, oldest first, never opening with a tool result whose call was cut off."""

    async def clear(self, session_id: str) -> None:
        """Drop the session; no error where there is none."""

    async def list_sessions(self) -> list[SessionSummary]:
        """All sessions, most recently active first."""

    async def get_history(self, session_id: str) -> list[ChatTurn]:
        """Everything kept, the summary turn included; [] for an unknown session."""


@runtime_checkable
class PreferenceStore(Protocol):
    """Layer 2, who this user is: (user, key) -> value, behind the guard rails of `preference/rules.py`."""

    async def get(self, user_id: str, key: str) -> str | None: ...

    async def set(self, user_id: str, key: str, value: str) -> bool:
        """Write or replace; False where the guard rails dropped it."""

    async def all(self, user_id: str) -> dict[str, str]:
        """Every preference of one user, in order of first writing."""

    async def forget(self, user_id: str) -> int:
        """Delete all of one user's preferences; how many there were."""


@runtime_checkable
class EpisodicStore(Protocol):
    """Layer 3, what happened before."""

    async def remember(self, record: EpisodicRecord) -> None:
        """Store; the same user and session again replaces summary and embedding and keeps `created_at`."""

    async def recall(self, embedding: ArrayLike, k: int = 3, *, user_id: str) -> list[Recollection]:
        """The `k` nearest of this user's records by cosine, best first, equal scores in order of arrival."""

    async def forget(self, user_id: str) -> int:
        """Delete all of one user's records; how many there were."""


def shown(value: Any, most: int = 60) -> str:
    """A value as it stands in an error message: its repr, shortened, and safe to print."""
    text = repr(value[: most + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= most else f"{text[:most]}…"


def refuse_surrogates(name: str, text: str) -> None:
    """ValueError where UTF-8 can't hold the text."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} has a lone surrogate {text[error.start]!r} at position {error.start}, which UTF-8 cannot hold; "
            "clean it with text.encode('utf-8', 'replace').decode()"
        ) from None


def require_text(name: str, value: Any) -> str:
    """Non-blank text that every engine can store, as every id is; ValueError otherwise."""
    if not isinstance(value, str) or not value or value.isspace():
        raise ValueError(f"{name} must be a non-blank string; got {shown(value)}")
    if "\0" in value:
        raise ValueError(f"{name} must not contain NUL, which Postgres cannot hold; got {shown(value)}")
    if not value.isascii():
        refuse_surrogates(name, value)
    return value


def require_count(name: str, value: Any, least: int = 0) -> int:
    """A whole number of at least `least`; ValueError otherwise."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {shown(value)}")
    return value


def require_seconds(name: str, value: Any) -> float:
    """A number of seconds above 0; ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"{name} must be a number of seconds above 0; got {shown(value)}")
    return value


def as_utc(name: str, value: Any) -> datetime:
    """An aware time in UTC, a plain datetime; a naive one is refused, since nobody knows which zone it meant."""
    if not isinstance(value, datetime) or value.tzinfo is None or value.utcoffset() is None:
        raise ValueError(f"{name} must be an aware datetime such as datetime.now(timezone.utc); got {shown(value)}")
    moment: datetime = value
    if type(value) is not datetime:  # a pandas Timestamp has nanoseconds, which no server keeps
        moment = datetime.combine(value.date(), value.time(), value.tzinfo)
    try:
        return moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{name} must lie between the years 1 and 9999 in UTC; got {shown(value)}") from None
