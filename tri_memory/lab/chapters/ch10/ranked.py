"""Every question against every memory of its person: cosine, places, gold. What all of the chapter is counted from."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from tri_memory.embedding import Embedder
from tri_memory.lab.chapters.ch10.kept import embedders
from tri_memory.lab.chapters.ch10.memories import LANGUAGES, Asked, Memory, asked_of, memories_of, users
from tri_memory.recall.cosine import top_k
from tri_memory.recall.fusion import fuse
from tri_memory.recall.lexical import LexicalIndex

RANKINGS = ("cosine", "words", "fused")
COLUMNS = ["language", "embedder", "user", "question", "kind", "about", "memory", "cosine_value", "gold", *RANKINGS]


@cache
def table() -> pd.DataFrame:
    """A row a question and memory, for each embedder that this machine has; places from 1, infinite where BM25 did not
    find the memory. Takes a few seconds, once.
    """
    rows = []
    for code, language in LANGUAGES.items():
        for name, embedder in embedders(language).items():
            for user in users(code):
                rows += [(language, name, user, *row) for row in _of_user(user, embedder)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_user(user: str, embedder: Embedder) -> list[tuple[object, ...]]:
    memories, asked = memories_of(user), asked_of(user)
    texts = [each.text for each in memories]
    matrix, vectors, words = embedder.encode(texts), embedder.encode([q.question for q in asked]), LexicalIndex(texts)
    rows = []
    for question, vector in zip(asked, vectors, strict=True):
        by_cosine, by_words = top_k(matrix, vector, len(texts)), words.rank(question.question, len(texts))
        rows += _rows(question, memories, dict(by_cosine), by_cosine, by_words)
    return rows


def _rows(
    question: Asked,
    memories: tuple[Memory, ...],
    cosines: dict[int, float],
    by_cosine: list[tuple[int, float]],
    by_words: list[tuple[int, float]],
) -> list[tuple[object, ...]]:
    # hybrid_recall's rows are places by cosine, and equal scores come in order of row: number them the same way here.
    place = {row: i for i, (row, _) in enumerate(by_cosine)}
    by_words = sorted(by_words, key=lambda pair: (-pair[1], place[pair[0]]))
    fused = fuse([(i, 0.0) for i in range(len(by_cosine))], [(place[row], 0.0) for row, _ in by_words])
    orders = (
        [row for row, _ in by_cosine],
        [row for row, _ in by_words],
        [by_cosine[i][0] for i, _ in fused],
    )
    places = [{row: n for n, row in enumerate(order, start=1)} for order in orders]
    its = (question.id, question.kind, question.about)
    return [
        (*its, i, cosines[i], memory.key in question.gold, *(float(each.get(i, np.inf)) for each in places))
        for i, memory in enumerate(memories)
    ]


def hits(its: pd.DataFrame, k: int) -> pd.DataFrame:
    """Answered questions with an answer among the first k, in per cent, a row a language and embedder and a column a
    ranking."""
    answered = its[its.gold]
    best = answered.groupby(["language", "embedder", "user", "question"], sort=False)[list(RANKINGS)].min()
    return 100 * (best <= k).groupby(["language", "embedder"], sort=False).mean()
