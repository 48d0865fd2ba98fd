"""Ways to choose what goes back into the prompt, each beside the others in every report.

A ranker is made once for a user's history and then asked: `ranker(history)(Asked(text, embedder))` gives the numbers of
memories, best first. "No memory" and "everything" are the two ends: nothing found for no token, all for the most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tri_memory.embedding import Embedder
from tri_memory.lab.history import History
from tri_memory.recall.conversation import FULL, ConversationIndex, Weights
from tri_memory.recall.cosine import top_k
from tri_memory.recall.fusion import fuse
from tri_memory.recall.lexical import LexicalIndex


@dataclass(frozen=True)
class Asked:
    """A question. Its vector is made when first needed, so that a ranker that needs none has not waited for it."""

    text: str
    embedder: Embedder

    @cached_property
    def vector(self) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.embedder.encode([self.text])[0]
        return vector


Ask = Callable[[Asked], list[int]]
Ranker = Callable[[History], Ask]

NO_MEMORY, NEWEST, BM25, COSINE, FUSION = "no memory", "newest", "BM25", "cosine", "fusion"
CONVERSATION, EVERYTHING = "conversation", "everything"


def no_memory(history: History) -> Ask:
    return lambda asked: []


def newest(history: History) -> Ask:
    """The last first, whatever is asked."""
    order = list(reversed(range(len(history.ids))))
    return lambda asked: order


def bm25(history: History) -> Ask:
    """By shared words; a memory that shares none is not found."""
    index = LexicalIndex(history.texts)
    return lambda asked: [memory for memory, _ in index.rank(asked.text, max(1, len(history.ids)))]


def cosine(history: History) -> Ask:
    """By the nearest row of each memory."""
    vectors = history.vectors
    return lambda asked: history.memories(row for row, _ in top_k(vectors, asked.vector, max(1, len(vectors))))


def fusion(history: History) -> Ask:
    """BM25 and cosine, joined by reciprocal rank."""
    parts = (bm25(history), cosine(history))
    return lambda asked: [memory for memory, _ in fuse(*([(m, None) for m in part(asked)] for part in parts))]


def conversation(history: History, weights: Weights = FULL) -> Ask:
    """The kit's best: words, meaning, speaker and neighbouring turns; see `recall/conversation.py`."""
    index = ConversationIndex(history.said, history.vectors, weights)
    return lambda asked: history.memories(f.row for f in index.rank(asked.text, asked.vector, max(1, len(index))))


RANKERS: dict[str, Ranker] = {
    NO_MEMORY: no_memory,
    NEWEST: newest,
    BM25: bm25,
    COSINE: cosine,
    FUSION: fusion,
    CONVERSATION: conversation,
    EVERYTHING: newest,
}
