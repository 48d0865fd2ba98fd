"""BM25 for one question over texts whose words were counted before, so that a user's memories are read only once.

An index of a thousand texts takes longer to build than a person should wait for at each question. What a text counts
never changes, so this needs no version: a memory that is written anew is another text. Kept are hashes, which hold no
word that could be read, salted anew in each process. Same formula and same order as `recall/lexical.py`.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Sequence
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from tri_memory.contracts import require_count
from tri_memory.recall.lexical import terms

K1, B = 1.5, 0.75


class WordCounts:
    """Counts of the last `most` texts that were ranked."""

    def __init__(self, most: int = 20_000) -> None:
        self._most = require_count("most", most, least=1)
        self._counts: OrderedDict[int, tuple[Counter[int], int]] = OrderedDict()  # of a text: its terms, their number
        self._lock = Lock()  # chats rank in threads of their own

    def __len__(self) -> int:
        return len(self._counts)

    def clear(self) -> None:
        with self._lock:
            self._counts.clear()

    def rank(self, query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
        """The rows of `texts` that share a term with the query, as (row, BM25 score), best first, equals by row."""
        asked = Counter(map(hash, terms(query)))
        if not asked or not texts:
            return []
        counted = [self._counted(text) for text in texts]
        lengths = np.array([length for _, length in counted], np.float64)
        norm = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9))
        scores = np.zeros(len(texts))
        for term, times in asked.items():
            frequency = np.array([counts[term] for counts, _ in counted], np.float64)
            found = np.count_nonzero(frequency)
            idf = math.log(1 + (len(texts) - found + 0.5) / (found + 0.5))
            scores += times * idf * frequency / (frequency + norm)
        rows = np.flatnonzero(scores > 0)
        best = rows[np.argsort(-scores[rows], kind="stable")]
        return list(zip(best.tolist(), scores[best].tolist(), strict=True))

    def _counted(self, text: str) -> tuple[Counter[int], int]:
        key = hash(text)
        known = self._counts.get(key)
        if known is None:
            counts = Counter(map(hash, terms(text)))
            known = counts, counts.total()
            with self._lock:
                self._counts[key] = known
                if len(self._counts) > self._most:
                    self._counts.popitem(last=False)
        return known


_OF_STORES: WeakKeyDictionary[object, WordCounts] = WeakKeyDictionary()


def counts_of(store: object) -> WordCounts:
    """The counts that all chats over this store share, so that a new session reads nothing again; gone with the store.

    A store that can't be a weak key, and None, get counts of their own.
    """
    try:
        return _OF_STORES.setdefault(store, WordCounts())
    except TypeError:
        return WordCounts()
