"""A queue of jobs for users, such as the archiving of their sessions, that forgetting empties."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from tri_memory.contracts import as_utc, require_text
from tri_memory.entity.records import Forgotten
from tri_memory.privacy.tombstones import Tombstones
from tri_memory.privacy.unit import writing

Work = Callable[[str], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done for a user with a text, and when it was queued."""

    user_id: str
    text: str
    work: Work
    queued_at: datetime


class Jobs:
    """First in, first out, in this process. A job runs as one unit of work that began when it was queued, so that one
    which a forgetting overtakes writes nothing, even where it was taken from the queue before."""

    name = "jobs"

    def __init__(self, tombstones: Tombstones) -> None:
        self._tombstones = tombstones
        self._waiting: deque[Job] = deque()

    def put(self, user_id: str, text: str, work: Work) -> None:
        """Queue `work(text)`. ValueError for a blank user."""
        at = as_utc("the clock's time", self._tombstones.clock())
        self._waiting.append(Job(require_text("user_id", user_id), text, work, at))

    async def run(self) -> bool:
        """Do the first job; whether it was done. False where nothing waits, or its user was forgotten since."""
        if not self._waiting:
            return False
        job = self._waiting.popleft()
        try:
            async with writing(self._tombstones, job.user_id, began_at=job.queued_at):
                await job.work(job.text)
        except Forgotten:
            return False
        return True

    async def forget(self, user_id: str) -> int:
        """Drop what waits for this user; how many jobs."""
        stay = [job for job in self._waiting if job.user_id != user_id]
        gone = len(self._waiting) - len(stay)
        self._waiting = deque(stay)
        return gone

    async def find(self, user_id: str, canary: str) -> int:
        return sum(canary in job.text for job in self._waiting if job.user_id == user_id)

    def __len__(self) -> int:
        return len(self._waiting)
