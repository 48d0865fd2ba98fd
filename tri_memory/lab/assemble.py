"""Loaded sessions and questions put together into a `Dataset`, once it is sure that every gold exists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tri_memory.contracts import shown
from tri_memory.lab.datasets import Dataset, Question, Session


def assemble(language: str, sessions: Iterable[Session], questions: Iterable[Question]) -> Dataset:
    """A dataset in order; ValueError where two sessions or two questions share an id, or gold names no turn."""
    ordered = tuple(sorted(sessions, key=lambda session: (session.user_id, session.started_at)))
    asked = tuple(questions)
    for name, ids in (("session", [s.session_id for s in ordered]), ("question", [q.question_id for q in asked])):
        if twice := [i for i, n in Counter(ids).items() if n > 1]:
            raise ValueError(f"{name} ids must differ; {shown(twice[0])} appears more than once")
    length = {session.session_id: len(session.turns) for session in ordered}
    for question in asked:
        for session_id, index in (*((s, 0) for s in question.gold_sessions), *question.gold_turns):
            if index >= length.get(session_id, 0):
                raise ValueError(f"question {question.question_id}: gold {session_id}[{index}] does not exist")
    return Dataset(language, ordered, asked)


def is_chinese(sessions: Iterable[Session]) -> bool:
    """Whether more than half of the letters are Han."""
    letters = [x for session in sessions for turn in session.turns for x in turn.content if x.isalpha()]
    return sum("\u4e00" <= letter <= "\u9fff" for letter in letters) * 2 > len(letters)
