"""A gate for the best recall: where nothing that was found is near the question, nothing goes into the prompt.

The threshold of a person is found on the questions of the others, or with one person alone, of every second question
on those between: nobody is judged by a threshold that their own answers helped to choose.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tri_memory.lab.datasets import Question
from tri_memory.lab.history import MemoryId

KEPT = 0.9  # of the questions that recall answers, this share is to be answered behind the gate too


@dataclass(frozen=True, slots=True)
class Answer:
    """What one method found for one question: the first memories, best first.

    `gold` is empty for a question that has no answer here. `nearest` is the highest cosine among those found, -1 where
    nothing was; `tokens` is what they cost in the prompt, `ms` how long it took to find them.
    """

    method: str
    question: Question
    gold: frozenset[MemoryId]
    found: tuple[MemoryId, ...]
    nearest: float
    tokens: int
    ms: float

    @property
    def hit(self) -> bool:
        return not self.gold.isdisjoint(self.found)


def gated(answers: Sequence[Answer], method: str) -> list[Answer]:
    """The answers of one method behind the gate, under the name `method`; [] where nothing can be calibrated."""
    folds = _folds([answer.question for answer in answers])
    thresholds = {fold: _threshold([a for a, f in zip(answers, folds, strict=True) if f != fold]) for fold in {*folds}}
    if None in thresholds.values():
        return []
    return [
        replace(answer, method=method) if answer.nearest >= (thresholds[fold] or 0) else _nothing(answer, method)
        for answer, fold in zip(answers, folds, strict=True)
    ]


def why_no_gate(answers: Sequence[Answer]) -> str:
    """Why `gated` can calibrate nothing, "" where it can."""
    folds = _folds([answer.question for answer in answers])
    answered = {fold for answer, fold in zip(answers, folds, strict=True) if answer.hit}
    if len(answered) > 1 or not answers:
        return ""
    if not answered:
        return "no gate: recall found the answer to no question, so no threshold can be chosen"
    if len({answer.question.user_id for answer in answers}) == 1:
        return "no gate: of one person, answers must be found on both halves of the questions; ask more of them"
    return f"no gate: only {answered.pop()} has questions that recall answered, and nobody is judged by their own"


def _nothing(answer: Answer, method: str) -> Answer:
    return replace(answer, method=method, found=(), nearest=-1.0, tokens=0)


def _folds(questions: Sequence[Question]) -> list[Hashable]:
    users = [question.user_id for question in questions]
    return list(users) if len(set(users)) > 1 else [number % 2 for number in range(len(users))]


def _threshold(answers: Sequence[Answer]) -> float | None:
    """The nearest memory's cosine that `KEPT` of the answered questions reach; None where none was answered."""
    nearest = [answer.nearest for answer in answers if answer.hit]
    return float(np.quantile(nearest, 1 - KEPT, method="lower")) if nearest else None
