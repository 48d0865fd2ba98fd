"""One user's past as memories to be ranked: single turns, or whole sessions.

A memory may be reached by several rows. Where memories are turns, each has one row; where they are sessions, each has a
row for every turn and one for its summary, and is as near to a question as the nearest of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tri_memory.embedding import Embedder
from tri_memory.lab.datasets import Dataset, Question, Session
from tri_memory.recall.conversation import Said

Level = Literal["turn", "session"]
MemoryId = str | tuple[str, int]  # a session, or a turn of it by its index


@dataclass(frozen=True)
class History:
    """`ids[m]` and `texts[m]` of memory m, the oldest first; row r is `said[r]` and leads to memory `memory_of[r]`."""

    ids: list[MemoryId]
    texts: list[str]
    said: list[Said]
    memory_of: list[int]
    embedder: Embedder

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """(rows, d), each row that of its text with the speaker's name before it."""
        return self.embedder.encode([f"{one.speaker}: {one.text}" for one in self.said])

    def memories(self, rows: Iterable[int]) -> list[int]:
        """The memories that these rows lead to, each where it comes up first."""
        return list(dict.fromkeys(self.memory_of[row] for row in rows))


def history_of(user_id: str, dataset: Dataset, level: Level, embedder: Embedder) -> History:
    """The memories of one user."""
    sessions = dataset.of(user_id)
    names = _names(sessions)
    history = History([], [], [], [], embedder)
    for session in sessions:
        day = _day(session.started_at, dataset.language)
        said = [Said(*_spoken(turn.role, turn.content, names), session.session_id, day) for turn in session.turns]
        if level == "turn":
            history.ids.extend((session.session_id, index) for index in range(len(said)))
            history.texts.extend(f"{one.speaker}: {one.text}" for one in said)
        else:
            if session.summary:
                said.append(Said("summary", session.summary, f"summary of {session.session_id}", day))
            history.ids.append(session.session_id)
            history.texts.append("\n".join(f"{one.speaker}: {one.text}" for one in said))
        first = len(history.ids) - (len(said) if level == "turn" else 1)
        history.memory_of.extend(first + (i if level == "turn" else 0) for i in range(len(said)))
        history.said.extend(said)
    return history


def gold_of(question: Question, level: Level) -> set[MemoryId]:
    """The ids of the memories that answer it."""
    return set(question.gold_turns if level == "turn" else question.gold_sessions)


def _names(sessions: Sequence[Session]) -> dict[str, str]:
    """By role, the name that all of its turns begin with, as those of LoCoMo do ("Caroline: Hey Mel!")."""
    heads: dict[str, set[str]] = {}
    for role, content in _contents(sessions):
        head, colon, _ = content.partition(": ")
        heads.setdefault(role, set()).add(head if colon and len(head) <= 40 else "")
    return {role: one for role, (one, *others) in heads.items() if one and not others}


def _contents(sessions: Sequence[Session]) -> Iterator[tuple[str, str]]:
    return ((turn.role, turn.content) for session in sessions for turn in session.turns)


def _spoken(role: str, content: str, names: dict[str, str]) -> tuple[str, str]:
    return (names[role], content.removeprefix(f"{names[role]}: ")) if role in names else (role, content)


def _day(day: datetime, language: str) -> str:
    """The words that a question may call it by."""
    return f"{day.year}年{day.month}月{day.day}日" if language == "zh" else f"{day.day} {day:%B}, {day.year}"
