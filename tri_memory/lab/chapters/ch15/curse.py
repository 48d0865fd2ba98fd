"""The winner's curse: the best of many settings on few questions, seen again on the others.

The score of a turn is words + meaning * cosine + extras * (length, asking, when), as in `recall/conversation.py`; the
index gives the parts of each score, so that any weighting is one product. The speaker's name plays no role here: nobody
in the kit calls the other by it.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.datasets import LANGUAGES, load
from tri_memory.lab.history import gold_of, history_of
from tri_memory.recall.conversation import FULL, ConversationIndex

K = 5
SHIPPED = (FULL.meaning, 1.0)  # of meaning, and of the extras as they stand in FULL
MOST_MEANING, MOST_EXTRAS = 2.0, 3.0
MOST_TRIED = 60


class Parts(NamedTuple):
    """One question: a row for each turn of its asker with words, cosine and extras, and whether the turn is gold."""

    scores: NDArray[np.float64]
    gold: NDArray[np.bool_]


@cache
def questions() -> tuple[Parts, ...]:
    """All answerable questions of the kit, in both languages."""
    every = []
    for dataset in map(load, LANGUAGES):
        for user in dataset.users():
            history = history_of(user, dataset, "turn", usual())
            index = ConversationIndex(history.said, history.vectors, FULL._replace(meaning=1.0))
            for question in (one for one in dataset.questions if one.user_id == user and one.gold_turns):
                found = index.rank(question.question, usual().encode([question.question])[0], len(index))
                rows = sorted((one.row, one.words, one.meaning, one.extras) for one in found)
                gold = gold_of(question, "turn")
                every.append(Parts(np.array(rows)[:, 1:], np.array([id in gold for id in history.ids])))
    return tuple(every)


def weightings(count: int, seed: int) -> NDArray[np.float64]:
    """(count, 2): the weight of the meaning and of the extras, drawn evenly."""
    return np.random.default_rng(seed).uniform((0, 0), (MOST_MEANING, MOST_EXTRAS), (count, 2))


def hits(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(weightings, questions): 1.0 where a turn that answers is among the first five."""
    return np.array([_hits(parts, weights) for parts in questions()]).T


def _hits(parts: Parts, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.atleast_2d(weights)
    scores = np.column_stack([np.ones(len(weights)), weights]) @ parts.scores.T  # (weightings, turns)
    first = np.argsort(-scores, axis=1, kind="stable")[:, :K]
    return np.asarray(parts.gold[first].any(axis=1), np.float64)


def tune(asked: int, tried: int, seed: int) -> dict[str, float]:
    """Choose the best of `tried` weightings on so many questions: its share of hits there, and on all others."""
    if not 1 <= tried <= MOST_TRIED:
        raise ValueError(f"tried must be 1 to {MOST_TRIED} weightings; got {tried}")
    table, shipped = _table(seed)[:tried], hits(np.array(SHIPPED))[0]
    chosen = np.random.default_rng([seed, asked]).permutation(table.shape[1])
    on, off = chosen[:asked], chosen[asked:]
    best = int(table[:, on].mean(axis=1).argmax())
    return {
        "reported": float(table[best, on].mean()),
        "on the others": float(table[best, off].mean()),
        "shipped": float(shipped[off].mean()),
    }


@lru_cache(maxsize=64)
def _table(seed: int) -> NDArray[np.float64]:
    return hits(weightings(MOST_TRIED, seed))
