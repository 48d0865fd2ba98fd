"""Layer 3 in a dictionary: one matrix of vectors for each user, compared with the query in one product.

What it does not do: outlive the process.
"""

from __future__ import annotations

import threading
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tri_memory.contracts import EpisodicRecord, Recollection, require_count, require_text, shown
from tri_memory.recall.cosine import as_unit, top_k


class InMemoryEpisodicStore:
    """Past sessions in this process.

    The first vector fixes the size of all others. Vectors are copied and kept at length 1 as float32, 4 bytes a number.
    Safe for several coroutines, and for several threads with loops of their own: calls take turns on one lock.
    """

    def __init__(self) -> None:
        self._dimensions: int | None = None
        self._episodes: dict[str, _Episodes] = {}
        self._lock = threading.Lock()

    async def remember(self, record: EpisodicRecord) -> None:
        """Store, or replace what this user's session had: then place and `created_at` stay.

        Raises ValueError, and stores nothing, for a vector that is zero, not finite, or of another size.
        """
        if not isinstance(record, EpisodicRecord):
            raise ValueError(f"record must be an EpisodicRecord; got {shown(record)}")
        with self._lock:
            unit = as_unit(record.embedding, self._dimensions)
            self._dimensions = unit.size
            if record.user_id not in self._episodes:
                self._episodes[record.user_id] = _Episodes(unit.size)
            self._episodes[record.user_id].put(record, unit)

    async def recall(self, embedding: ArrayLike, k: int = 3, *, user_id: str) -> list[Recollection]:
        """The `k` nearest of this user's records by cosine, best first, equal scores in order of arrival.

        [] for a zero embedding, as a blank query gives, and for an unknown user. Raises ValueError for a blank user,
        k < 1, and an embedding of another size (naming both).
        """
        require_text("user_id", user_id)
        require_count("k", k, least=1)
        with self._lock:
            query = as_unit(embedding, self._dimensions, zero_ok=True)
            episodes = self._episodes.get(user_id)
            return episodes.nearest(query, k) if episodes else []

    async def forget(self, user_id: str) -> int:
        """Delete all of one user's records, the vectors too; how many there were."""
        require_text("user_id", user_id)
        with self._lock:
            episodes = self._episodes.pop(user_id, None)
            return len(episodes.kept) if episodes else 0


class _Kept(NamedTuple):
    session_id: str
    summary: str
    created_at: datetime


class _Episodes:
    """One user's records: row i of the matrix belongs to `kept[i]`. Rows beyond them are room to grow."""

    def __init__(self, dimensions: int) -> None:
        self.kept: list[_Kept] = []
        self._row_of: dict[str, int] = {}
        self._matrix: NDArray[np.float32] = np.empty((8, dimensions), np.float32)

    def put(self, record: EpisodicRecord, unit: NDArray[np.float32]) -> None:
        row = self._row_of.get(record.session_id)
        if row is None:
            row = len(self.kept)
            self._make_room(row)
            self.kept.append(_Kept(record.session_id, record.summary, record.created_at))
            self._row_of[record.session_id] = row
        else:
            self.kept[row] = self.kept[row]._replace(summary=record.summary)
        self._matrix[row] = unit

    def nearest(self, query: NDArray[np.float32], k: int) -> list[Recollection]:
        found = top_k(self._matrix[: len(self.kept)], query, k)
        return [
            Recollection(kept.session_id, kept.summary, score, kept.created_at)
            for kept, score in ((self.kept[row], score) for row, score in found)
        ]

    def _make_room(self, row: int) -> None:
        """Twice the rows when full, so that a record costs the same however many there are (amortised)."""
        if row == len(self._matrix):
            larger = np.empty((2 * row, self._matrix.shape[1]), np.float32)
            larger[:row] = self._matrix
            self._matrix = larger
