"""The sessions and the answerable questions of one language, as a search sees them: rows and columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tri_memory.lab import datasets
from tri_memory.lab.datasets import Question, Session

LANGUAGES = {"en": "English", "zh": "Chinese"}
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Corpus:
    """`own` and `gold` are (questions, sessions): whether the session is the asker's own, and holds the answer."""

    language: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]
    own: Mask
    gold: Mask

    @property
    def summaries(self) -> list[str]:
        return [session.summary for session in self.sessions]

    @property
    def asked(self) -> list[str]:
        return [question.question for question in self.questions]


@cache
def corpus(language: str) -> Corpus:
    """The kit's own conversations, without the questions that nothing answers."""
    data = datasets.load(language)
    questions = tuple(question for question in data.questions if question.gold_sessions)
    own = np.array([[s.user_id == q.user_id for s in data.sessions] for q in questions])
    gold = np.array([[s.session_id in q.gold_sessions for s in data.sessions] for q in questions])
    return Corpus(LANGUAGES[language], data.sessions, questions, own, gold)
