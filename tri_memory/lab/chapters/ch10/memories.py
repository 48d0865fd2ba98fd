"""What each person of the kit said before, one memory an exchange, and three kinds of questions to them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import NamedTuple

from tri_memory.contracts import ChatTurn, EpisodicRecord, EpisodicStore
from tri_memory.embedding import Embedder
from tri_memory.lab import datasets
from tri_memory.lab.datasets import TRADES, Dataset, Question

LANGUAGES = {"en": "English", "zh": "Chinese"}
ANSWERED, NEAR, FAR = "answered", "near miss", "another topic"
KINDS = (ANSWERED, NEAR, FAR)


class Memory(NamedTuple):
    """What a person said and what came back, of visit `key.split("/")[0]`; `turns` are pairs as in `gold_turns`."""

    key: str
    text: str
    at: datetime
    turns: frozenset[tuple[str, int]]


class Asked(NamedTuple):
    """A question to the memories of `user`. `gold` holds the keys of those that answer it; none of another's do."""

    id: str
    user: str
    kind: str
    question: str
    gold: frozenset[str]
    facts: tuple[str, ...] = ()
    about: str = ""  # the kit's own word for it, such as "exact_id"


_data = cache(datasets.load)


@cache
def memories_of(user: str) -> tuple[Memory, ...]:
    """About 27 a person, oldest first: a turn of the user begins one."""
    return tuple(each for visit in _data(user[:2]).of(user) for each in _exchanges(visit))


def _exchanges(visit: datasets.Session) -> Iterable[Memory]:
    groups: list[list[int]] = []
    for i, turn in enumerate(visit.turns):
        if turn.role == "user" or not groups:
            groups.append([])
        groups[-1].append(i)
    for number, group in enumerate(groups):
        text = "\n".join(_said(visit.turns[i]) for i in group)
        turns = frozenset((visit.session_id, i) for i in group)
        yield Memory(f"{visit.session_id}/{number}", text, visit.started_at, turns)


def _said(turn: ChatTurn) -> str:
    return turn.content.strip()


@cache
def asked_of(user: str) -> tuple[Asked, ...]:
    """The person's own questions, those among them that nothing answers, and as far ones all answerable questions of
    somebody who came about another thing (the next trade, same number)."""
    data = _data(user[:2])
    own = [_own(each, user) for each in data.questions if each.user_id == user]
    other = _somebody_else(data, user)
    far = [
        Asked(f"{user}<{each.question_id}", user, FAR, each.question, frozenset())
        for each in data.questions
        if each.user_id == other and each.gold_sessions
    ]
    return (*own, *far)


def _own(question: Question, user: str) -> Asked:
    gold = frozenset(each.key for each in memories_of(user) if each.turns & set(question.gold_turns))
    kind = ANSWERED if question.gold_turns else NEAR
    return Asked(question.question_id, user, kind, question.question, gold, question.facts, question.kind)


def _somebody_else(data: Dataset, user: str) -> str:
    language, trade, number = user.split("-")
    return f"{language}-{TRADES[(TRADES.index(trade) + 1) % len(TRADES)]}-{number}"


def users(language: str) -> list[str]:
    """The twelve of `"en"` or `"zh"`."""
    return _data(language).users()


async def fill(store: EpisodicStore, user: str, embedder: Embedder) -> EpisodicStore:
    """Every memory of this person, as an episode of its own, at the time it was said; the store again."""
    memories = memories_of(user)
    for each, vector in zip(memories, embedder.encode([each.text for each in memories]), strict=True):
        await store.remember(EpisodicRecord(user, each.key, each.text, vector, each.at))
    return store
