"""What people told about themselves, visit by visit, as pairs that a careful colleague would note down."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from tri_memory.lab.chapters.ch06.keys import KEYS
from tri_memory.lab.datasets import Dataset, Question
from tri_memory.lab.survival import stands_in


class Told(NamedTuple):
    """A person said `value` about `key` in visit number `visit` (0 is the first) on that day."""

    visit: int
    day: date
    key: str
    value: str


def asked_of(dataset: Dataset, user: str) -> list[Question]:
    """The gold questions about this person's preferences and changed facts."""
    return [question for question in dataset.questions if question.user_id == user and question.question_id in KEYS]


def told(dataset: Dataset, user: str) -> list[Told]:
    """Everything of that kind that `user` told, in the order of the visits, outdated values too."""
    return sorted(
        (pair for question in asked_of(dataset, user) for pair in about(dataset, question)),
        key=lambda pair: pair.visit,  # sorted keeps the order of equal ones
    )


def about(dataset: Dataset, question: Question) -> list[Told]:
    """The values that the answer to one question has had, oldest first; the last is the one that holds."""
    visits = dataset.of(question.user_id)
    key = KEYS[question.question_id]
    said = ["\n".join(turn.content for turn in visit.turns) for visit in visits]
    ids = [visit.session_id for visit in visits]
    holds_since = max(ids.index(session) for session in question.gold_sessions)
    older = []
    for value in question.outdated:
        first = next(n for n, text in enumerate(said) if stands_in(value, text))
        older.append(Told(first, visits[first].started_at.date(), key, value))
    return [
        *sorted(older, key=lambda pair: pair.visit),
        Told(holds_since, visits[holds_since].started_at.date(), key, "; ".join(question.facts)),
    ]


def as_notes(pairs: list[Told]) -> list[str]:
    """A list of notes to which each new fact is added at the end."""
    return [f"{pair.day:%Y-%m-%d} {pair.key}: {pair.value}" for pair in pairs]


def still_standing(dataset: Dataset) -> tuple[int, int]:
    """Of how many changed facts a list of notes holds an outdated value too, and how many changed facts there are."""
    changed = [question for question in dataset.questions if question.kind == "changed_fact"]
    doubled = [question for question in changed if len(about(dataset, question)) > 1]
    return len(doubled), len(changed)
