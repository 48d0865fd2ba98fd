"""A person's later questions, put to the built-in model with what five kinds of memory know by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time

import numpy as np
import pandas as pd

from tri_memory.agent.builtin import PromptOnlyModel
from tri_memory.agent.notice import notice
from tri_memory.agent.prompt import assemble, sections
from tri_memory.contracts import ChatTurn, Recollection
from tri_memory.lab.chapters.ch06.told import Told, about, asked_of, told
from tri_memory.lab.datasets import Dataset, Question
from tri_memory.lab.survival import stands_in

LANGUAGES = {"en": "English", "zh": "Chinese"}


@dataclass(frozen=True)
class Known:
    """What a memory puts into the prompt of a new visit."""

    preferences: dict[str, str] = field(default_factory=dict)
    notes: tuple[Recollection, ...] = ()
    window: tuple[ChatTurn, ...] = ()


Memory = Callable[[Dataset, str, int], Known]  # data, user, how many visits there were


def nothing(dataset: Dataset, user: str, visits: int) -> Known:
    """A new visit is a new session: its window is empty."""
    return Known()


def everything(dataset: Dataset, user: str, visits: int) -> Known:
    """All turns of all visits."""
    return Known(window=tuple(turn for visit in dataset.of(user)[:visits] for turn in visit.turns))


def notes(dataset: Dataset, user: str, visits: int) -> Known:
    """A list to which each new fact is added."""
    return Known(notes=tuple(map(as_note, _until(dataset, user, visits))))


def a_row_a_key(dataset: Dataset, user: str, visits: int) -> Known:
    """The same facts, each under its key; a later one replaces."""
    return Known(preferences={pair.key: pair.value for pair in _until(dataset, user, visits)})


def by_rule(dataset: Dataset, user: str, visits: int) -> Known:
    """A row a key again, but only what the rules of `notice` find by themselves in the user's words."""
    said = (turn.content for turn in everything(dataset, user, visits).window if turn.role == "user")
    return Known(preferences=dict(pair for text in said for pair in notice(text)))


MEMORIES: dict[str, Memory] = {
    "window only": nothing,
    "keys, by rule": by_rule,
    "everything said": everything,
    "list of notes": notes,
    "keys, by hand": a_row_a_key,
}


def pairs_of(datasets: Sequence[Dataset]) -> tuple[list[tuple[str, str]], int]:
    """The pairs that the rules find in what everybody said, and how many a careful colleague wrote."""
    people = [(dataset, user, len(dataset.of(user))) for dataset in datasets for user in dataset.users()]
    found = [pair for person in people for pair in by_rule(*person).preferences.items()]
    return found, sum(len(a_row_a_key(*person).preferences) for person in people)


def as_note(pair: Told) -> Recollection:
    """The fact as a dated line of a prompt."""
    text = f"{pair.key}: {pair.value}"
    return Recollection(pair.key, text, 1.0, datetime.combine(pair.day, time(), UTC))


def _until(dataset: Dataset, user: str, visits: int) -> list[Told]:
    return [pair for pair in told(dataset, user) if pair.visit < visits]


async def answer(known: Known, question: str) -> tuple[str, int]:
    """The built-in model's answer in a new visit, and the tokens of the prompt, the question included."""
    messages = assemble(known.window, question=question, preferences=known.preferences, episodes=known.notes)
    parts = sections(known.window, question=question, preferences=known.preferences, episodes=known.notes)
    return await PromptOnlyModel()(messages), sum(part.tokens for part in parts)


def verdict(dataset: Dataset, question: Question, reply: str) -> str:
    """`right`: all facts of the answer, and no value that held before; `outdated`: such a value is in it; `not known`:
    neither."""
    *older, newest = about(dataset, question)
    if any(stands_in(pair.value, reply) for pair in older):
        return "outdated"
    return "right" if all(stands_in(fact, reply) for fact in newest.value.split("; ")) else "not known"


async def ask_everybody(datasets: Sequence[Dataset]) -> pd.DataFrame:
    """One row a question and memory, asked in a new visit after all five: language, user, question, kind, memory,
    verdict, tokens of the prompt."""
    rows = []
    for dataset in datasets:
        for user in dataset.users():
            for memory, recall in MEMORIES.items():
                known = recall(dataset, user, len(dataset.of(user)))
                for question in asked_of(dataset, user):
                    reply, tokens = await answer(known, question.question)
                    judged = verdict(dataset, question, reply)
                    language = LANGUAGES[dataset.language]
                    rows.append((language, user, question.question_id, question.kind, memory, judged, tokens))
    return pd.DataFrame(rows, columns=["language", "user", "question", "kind", "memory", "verdict", "tokens"])


def shares(table: pd.DataFrame, judged: str) -> pd.DataFrame:
    """The share of answers with this verdict in per cent, a row a language and memory, with the 95 % interval from
    2,000 resamplings of the users."""
    rows = []
    for (language, memory), its in table.groupby(["language", "memory"], sort=False):
        hits = its.assign(hit=its.verdict == judged).groupby("user").hit.agg(["sum", "count"]).to_numpy()
        drawn = hits[np.random.default_rng(6).integers(len(hits), size=(2_000, len(hits)))].sum(axis=1)
        low, high = np.percentile(100 * drawn[:, 0] / drawn[:, 1], [2.5, 97.5])
        rows.append((language, memory, 100 * hits[:, 0].sum() / hits[:, 1].sum(), low, high))
    return pd.DataFrame(rows, columns=["language", "memory", "share", "low", "high"])
