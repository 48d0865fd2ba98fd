"""Layer 3 in a dictionary: one matrix of vectors for each user, compared with the query in one product.

What it does not do: outlive the process.
"""

from __future__ import annotations

import threading
from bisect import bisect
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import count

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tri_memory.clock import Clock, system_clock, utc_now
from tri_memory.contracts import EpisodicRecord, Recollection, require_count, require_text, shown
from tri_memory.episodic.fading import Archived, Faded, Fading, MemoryId
from tri_memory.recall.cosine import as_unit, top_k


class InMemoryEpisodicStore:
    """Past sessions in this process; a `FadingStore`.

    The first vector fixes the size of all others. Vectors are copied and kept at length 1 as float32, 4 bytes a number.
    Safe for several coroutines, and for several threads with loops of their own: calls take turns on one lock.
    """

    def __init__(self, *, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._dimensions: int | None = None
        self._episodes: dict[str, _Episodes] = {}
        self._arrivals = count()
        self._lock = threading.Lock()

    async def remember(self, record: EpisodicRecord) -> None:
        """Store, or replace what this user's session had: then place and `created_at` stay, and it is active and fresh.

        Raises ValueError, and stores nothing, for a vector that is zero, not finite, or of another size.
        """
        if not isinstance(record, EpisodicRecord):
            raise ValueError(f"record must be an EpisodicRecord; got {shown(record)}")
        with self._lock:
            unit = as_unit(record.embedding, self._dimensions)
            today = utc_now(self._clock).date()
            self._dimensions = unit.size
            if record.user_id not in self._episodes:
                self._episodes[record.user_id] = _Episodes(unit.size)
            self._episodes[record.user_id].put(record, unit, self._arrivals, today)

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
        """Delete all of one user's records, the vectors and the archived ones too; how many there were."""
        require_text("user_id", user_id)
        with self._lock:
            episodes = self._episodes.pop(user_id, None)
            return len(episodes.kept) + len(episodes.archived) if episodes else 0

    async def use(self, user_id: str, session_id: str, *, injected: bool = False) -> bool:
        """A recalled memory helped: 0.1 more. False where that is no use: `injected`, or no such memory is active."""
        _require_ids(user_id, session_id)
        with self._lock:
            today, episodes = utc_now(self._clock).date(), self._episodes.get(user_id)
            return bool(episodes and not injected and episodes.use(session_id, today))

    async def fade(self, *, dry_run: bool = False) -> Faded:
        """Archive every memory, of all users, that weighs less than 0.5 today; with `dry_run`, only say which."""
        with self._lock:
            now = utc_now(self._clock)
            looked_at = sum(len(episodes.kept) for episodes in self._episodes.values())
            over: list[MemoryId] = []
            for user_id, episodes in self._episodes.items():
                found = episodes.over(now.date())
                over += [MemoryId(user_id, session_id) for session_id in found]
                if found and not dry_run:
                    episodes.archive(found, now)
            return Faded(looked_at, tuple(sorted(over)))

    async def archived(self, user_id: str) -> list[Archived]:
        """What is kept of this user for audit, in order of arrival."""
        require_text("user_id", user_id)
        with self._lock:
            episodes = self._episodes.get(user_id)
            kept = sorted(episodes.archived.values(), key=lambda each: each[0].arrival) if episodes else []
            return [Archived(one.session_id, one.summary, one.created_at, when) for one, _, when in kept]

    async def restore(self, user_id: str, session_id: str) -> bool:
        """Recall it again: 1.0 from today, `created_at` and place as they were. False where the archive has it not."""
        _require_ids(user_id, session_id)
        with self._lock:
            today, episodes = utc_now(self._clock).date(), self._episodes.get(user_id)
            return bool(episodes and episodes.restore(session_id, today))


def _require_ids(user_id: str, session_id: str) -> None:
    require_text("user_id", user_id)
    require_text("session_id", session_id)


@dataclass(frozen=True, slots=True)
class _Kept:
    session_id: str
    summary: str
    created_at: datetime
    arrival: int
    fading: Fading


class _Episodes:
    """One user's records: row i of the matrix belongs to `kept[i]`. Rows beyond them are room to grow."""

    def __init__(self, dimensions: int) -> None:
        self.kept: list[_Kept] = []  # in order of arrival
        self.archived: dict[str, tuple[_Kept, NDArray[np.float32], datetime]] = {}
        self._row_of: dict[str, int] = {}
        self._matrix: NDArray[np.float32] = np.empty((8, dimensions), np.float32)

    def put(self, record: EpisodicRecord, unit: NDArray[np.float32], arrivals: count[int], today: date) -> None:
        self.restore(record.session_id, today)
        row = self._row_of.get(record.session_id)
        if row is None:
            row = len(self.kept)
            self._make_room(row)
            fading = Fading(record.created_at.date())
            self.kept.append(_Kept(record.session_id, record.summary, record.created_at, next(arrivals), fading))
            self._row_of[record.session_id] = row
        else:
            self.kept[row] = replace(self.kept[row], summary=record.summary, fading=Fading(today))
        self._matrix[row] = unit

    def nearest(self, query: NDArray[np.float32], k: int) -> list[Recollection]:
        found = top_k(self._matrix[: len(self.kept)], query, k)
        return [
            Recollection(kept.session_id, kept.summary, score, kept.created_at)
            for kept, score in ((self.kept[row], score) for row, score in found)
        ]

    def use(self, session_id: str, today: date) -> bool:
        row = self._row_of.get(session_id)
        if row is None:
            return False
        self.kept[row] = replace(self.kept[row], fading=self.kept[row].fading.used(today))
        return True

    def over(self, today: date) -> list[str]:
        return [one.session_id for one in self.kept if one.fading.is_over(today)]

    def archive(self, session_ids: list[str], now: datetime) -> None:
        for session_id in session_ids:
            row = self._row_of[session_id]
            self.archived[session_id] = self.kept[row], self._matrix[row].copy(), now
        stay = [row for row, one in enumerate(self.kept) if one.session_id not in self.archived]
        self._matrix[: len(stay)] = self._matrix[stay]
        self._keep([self.kept[row] for row in stay])

    def restore(self, session_id: str, today: date) -> bool:
        if session_id not in self.archived:
            return False
        one, unit, _ = self.archived.pop(session_id)
        row, end = bisect([other.arrival for other in self.kept], one.arrival), len(self.kept)
        self._make_room(end)
        self._matrix[row + 1 : end + 1] = self._matrix[row:end].copy()
        self._matrix[row] = unit
        self._keep([*self.kept[:row], replace(one, fading=Fading(today)), *self.kept[row:]])
        return True

    def _keep(self, kept: list[_Kept]) -> None:
        self.kept = kept
        self._row_of = {one.session_id: row for row, one in enumerate(kept)}

    def _make_room(self, row: int) -> None:
        """Twice the rows when full, so that a record costs the same however many there are (amortised)."""
        if row == len(self._matrix):
            larger = np.empty((2 * row, self._matrix.shape[1]), np.float32)
            larger[:row] = self._matrix
            self._matrix = larger
