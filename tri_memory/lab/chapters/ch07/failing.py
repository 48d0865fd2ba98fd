"""The questions that use other words than the summaries: what shared words find of them, and what the cosine finds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tri_memory import ChatTurn, InMemoryEpisodicStore, InMemorySessionStore
from tri_memory.agent import matching
from tri_memory.embedding import default_embedder
from tri_memory.episodic.archive import archive
from tri_memory.lab.chapters.ch07.corpus import corpus
from tri_memory.lab.datasets import Question, Session


def paraphrases(language: str) -> list[Question]:
    """The questions of that kind, `"en"` or `"zh"`."""
    return [question for question in corpus(language).questions if question.kind == "paraphrase"]


def visits_of(user: str) -> list[Session]:
    """The person's visits, oldest first."""
    return [session for session in corpus(user[:2]).sessions if session.user_id == user]


def shared_words(question: str, summary: str) -> set[str]:
    """The words (in Chinese, characters and pairs) that both have; those that every question has don't count."""
    return matching.terms(question) & matching.terms(summary)


async def archived(users: Iterable[str]) -> InMemoryEpisodicStore:
    """Every visit of these people through the archive: its turns, the colleague's summary, its vector, one record."""
    episodes = InMemoryEpisodicStore()
    for user in users:
        for visit in visits_of(user):
            sessions = InMemorySessionStore()
            for turn in visit.turns:
                await sessions.append(visit.session_id, turn)
            await archive(
                visit.session_id,
                user_id=user,
                sessions=sessions,
                episodes=episodes,
                embedder=default_embedder(),
                summarizer=_by_hand(visit),
            )
    return episodes


def _by_hand(visit: Session) -> Any:
    def summarise(turns: Sequence[ChatTurn]) -> str:
        return visit.summary

    return summarise
