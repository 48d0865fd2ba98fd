"""Every question of the kit with the whole ranking of every method, so that k can be chosen afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tri_memory.embedding import Embedder
from tri_memory.lab.admission import Answer, gated
from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.datasets import Dataset, Question, load
from tri_memory.lab.evaluation import GATED
from tri_memory.lab.history import MemoryId, gold_of, history_of
from tri_memory.lab.known_items import off_topic
from tri_memory.lab.metrics import recall_any
from tri_memory.lab.rankers import CONVERSATION, EVERYTHING, RANKERS, Asked, Ranker
from tri_memory.lab.report import Report
from tri_memory.session.tokens import estimate_tokens


@dataclass(frozen=True)
class Ranked:
    """All that one method finds for one question, best first; `cosines` and `tokens` (n,) belong to `ids`."""

    method: str
    question: Question
    gold: frozenset[MemoryId]
    ids: tuple[MemoryId, ...]
    cosines: NDArray[np.float32]
    tokens: NDArray[np.intp]

    def first(self, k: int) -> Answer:
        """What would go into the prompt if it takes k memories; "everything" takes all."""
        most = len(self.ids) if self.method == EVERYTHING else k
        nearest = float(self.cosines[:most].max(initial=-1.0))
        cost = int(self.tokens[:most].sum())
        return Answer(self.method, self.question, self.gold, self.ids[:most], nearest, cost, 0.0)


@cache
def of(language: str) -> tuple[Ranked, ...]:
    """The kit's methods on the kit's turns, "en" or "zh"; the embedder works once for each text of this process."""
    return tuple(rank(load(language), RANKERS, usual()))


def rank(dataset: Dataset, rankers: Mapping[str, Ranker], embedder: Embedder) -> Iterator[Ranked]:
    """Each question, and questions off topic, put to each ranker. Memories are turns."""
    questions = (*dataset.questions, *off_topic(dataset))
    for user in dataset.users():
        history = history_of(user, dataset, "turn", embedder)
        asks = {name: ranker(history) for name, ranker in rankers.items()}
        costs = np.array([estimate_tokens(text) for text in history.texts])
        for question in (one for one in questions if one.user_id == user):
            asked = Asked(question.question, embedder)
            cosines = history.vectors @ asked.vector
            for name, ask in asks.items():
                found = ask(asked)
                ids = tuple(history.ids[memory] for memory in found)
                gold = frozenset(gold_of(question, "turn"))
                yield Ranked(name, question, gold, ids, cosines[found], costs[found])


@cache
def report(language: str, k: int) -> Report:
    """What `evaluate` says for the k first turns, but for the milliseconds, which are zero here."""
    answers = [one.first(k) for one in of(language)]
    answers += gated([answer for answer in answers if answer.method == CONVERSATION], GATED)
    return Report(f"the kit, {language}", "turn", (k,), answers, simulated=False, left_out=0)


@cache
def _by_person(language: str, method: str, k: int) -> dict[str, NDArray[np.float64]]:
    """By person, (questions, 2): hit or not among the first k, and tokens, of questions that have an answer."""
    rows: dict[str, list[tuple[float, int]]] = {}
    for one in of(language):
        if one.method == method and one.gold:
            answer = one.first(k)
            hit = 1.0 if method == EVERYTHING else recall_any(answer.found, answer.gold, k)
            rows.setdefault(one.question.user_id, []).append((hit, answer.tokens))
    return {user: np.array(its) for user, its in rows.items()}


def of_person(language: str, method: str, k: int, number: int) -> dict[str, float]:
    """Recall any@k and mean tokens in the prompt over the questions of one person, by number from 0."""
    people = _by_person(language, method, k)
    if not people:
        raise ValueError(f"method must be one of {', '.join(RANKERS)}; got {method!r}")
    if not 0 <= number < len(people):
        raise ValueError(f"there are {len(people)} people, from number 0 on; got {number}")
    recall, tokens = people[sorted(people)[number]].mean(axis=0)
    return {"recall": float(recall), "tokens": float(tokens)}
