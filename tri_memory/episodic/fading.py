"""Memories that nobody uses leave the recall, and are not lost: what an episodic store with an archive promises."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple, Protocol, runtime_checkable

from tri_memory.contracts import EpisodicStore
from tri_memory.recall.decay import StepState, is_archived


class MemoryId(NamedTuple):
    """Whose memory, and of which session."""

    user_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Faded:
    """What one run of `fade` did; after a dry run, what it would have done. Both lists are sorted.

    `skipped` stay as they are: a store holds a `created_at` of theirs that is no time of the years 1 to 9999, such as
    Postgres' infinity, and so no age.
    """

    looked_at: int
    archived: tuple[MemoryId, ...] = ()
    skipped: tuple[MemoryId, ...] = ()

    @property
    def stay(self) -> int:
        """How many of those looked at are still recalled."""
        return self.looked_at - len(self.archived)


@dataclass(frozen=True, slots=True)
class Archived:
    """A memory that is kept for audit and not recalled. Both times are aware, in UTC."""

    session_id: str
    summary: str
    created_at: datetime
    archived_at: datetime


@runtime_checkable
class FadingStore(EpisodicStore, Protocol):
    """An episodic store whose memories fade by the step rule of `recall/decay.py`.

    A memory weighs 1.0 on the day it was made (`created_at`), 0.2 less after each 30 days, 0.1 more after each use.
    The weight doesn't change the ranking. It decides one thing: what is below 0.5 when `fade` runs, once a night, moves
    to the archive. There `recall` can't find it, `archived` shows it to an auditor, `restore` brings it back, and
    `forget` deletes it together with the rest.

    Uses are told, not guessed: a memory that recall found has not helped yet. Nor does it help itself: what the system
    put into a prompt unasked is `injected`, and no use, or whatever is recalled once would be recalled for ever.

    Days are those of the store's clock in UTC, so that the hour at which the job runs changes nothing, nor does a
    second run on the same day. `remember` for a session that is known, archived or not, keeps `created_at` and place,
    and the weight is 1.0 from today: what was just written is as fresh as can be.
    """

    async def use(self, user_id: str, session_id: str, *, injected: bool = False) -> bool:
        """A recalled memory helped: 0.1 more. False where that is no use: `injected`, or no such memory is active."""

    async def fade(self, *, dry_run: bool = False) -> Faded:
        """Archive every memory, of all users, that weighs less than 0.5 today.

        Safe to repeat, to run twice at once, and to kill: each memory is in one place, and the next run does the rest.
        With `dry_run` no memory is moved.
        """

    async def archived(self, user_id: str) -> list[Archived]:
        """What is kept of this user for audit, in order of arrival."""

    async def restore(self, user_id: str, session_id: str) -> bool:
        """Recall it again: 1.0 from today, `created_at` and place as they were. False where the archive has it not."""


class Fading(NamedTuple):
    """How one memory fades: the UTC day from which its age counts, and the state of the step rule."""

    since: date
    state: StepState = StepState()

    def used(self, today: date) -> Fading:
        return self._replace(state=self.state.used(self._age(today)))

    def is_over(self, today: date) -> bool:
        return is_archived(self.state.weight(self._age(today)))

    def _age(self, today: date) -> int:
        """Whole days; 0 where the clock has jumped back."""
        return max(0, (today - self.since).days)
