"""Where "now" comes from. Stores take a clock, so that a lesson can let 180 days pass in a line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tri_memory.contracts import as_utc

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Now, as an aware time in UTC."""
    return datetime.now(UTC)


def utc_now(clock: Clock) -> datetime:
    """What the clock says, in UTC; ValueError for a naive time."""
    return as_utc("the clock's time", clock())


class ManualClock:
    """A clock that moves only when told to.

    >>> clock = ManualClock(datetime(2026, 1, 5, tzinfo=UTC))
    >>> clock.advance(days=2)
    >>> clock().day
    7
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._now = as_utc("start", start if start is not None else datetime(2026, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self._now

    def advance(self, **amount: float) -> None:
        """Move by `timedelta(**amount)`: days, hours, minutes, seconds. A negative amount jumps back."""
        self._now += timedelta(**amount)

    def set(self, now: datetime) -> None:
        """Jump to an aware time, forwards or back."""
        self._now = as_utc("now", now)
